import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { acceptsCommand } from '../cli/accepts-command.ts';
import { askedBy, blocksOf, kindOf, pages, placeOf, root, textOf } from './blocks.ts';
import { LISTED, listingOf, scriptsExist } from './listed.ts';

const blocks = pages().flatMap((page) => blocksOf(page));

test('every block of code is run, or is the answer of one that is, or stands in the list with a reason', () => {
  expect(blocks.length).toBeGreaterThan(150);
  const neither = blocks.filter((block) => {
    if (listingOf(block) !== undefined) return false;
    const kind = kindOf(block);
    const asked = kind === 'answer' ? askedBy(block) : block;
    return kind === 'unknown' || asked === undefined || listingOf(asked) !== undefined;
  });
  // test/docs/README.md says what to do about it.
  expect(neither.map((block) => `${placeOf(block)} (${block.language})`)).toEqual([]);
});

test('a block without a language is a drawing or an output, and no command that would not be run', () => {
  const commands = blocks.filter(
    (block) => kindOf(block) === 'drawing' && /^(?:\$ |curl |npm |firelock |docker )/m.test(block.text),
  );
  expect(commands.map(placeOf)).toEqual([]);
});

test('every entry of the list is about a block, and names a test that there is', () => {
  for (const listed of LISTED) {
    const own = blocks.filter((block) => listingOf(block) === listed);
    expect(own.length, `${listed.page}: ${listed.begins}`).toBeGreaterThan(0);
    for (const { text } of own) listed.check?.(text);
    if (listed.doneBy !== undefined) expect(existsSync(join(root, listed.doneBy)), listed.doneBy).toBe(true);
  }
});

test('every script of npm that a page names is there', () => {
  for (const page of pages()) scriptsExist(textOf(page));
});

test('every command of firelock that a page names within a line is there, with its options', () => {
  expect(pages().flatMap((page) => unknownIn(page))).toEqual([]);
});

/** A page may leave out what a command needs. */
function unknownIn(page: string): string[] {
  const named = textOf(page).matchAll(/`(?:firelock|npm start (?:-s |--silent )?--) ([^`\n…[]+)`/g);
  return [...named].flatMap(([, line = '']) => {
    try {
      acceptsCommand(line);
      return [];
    } catch (error) {
      const { message } = error as Error;
      return /unknown (?:command|option)/.test(message) ? [`${page}: ${message}`] : [];
    }
  });
}
