import { existsSync, statSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { expect, test } from 'vitest';
import { referencePages } from '../../scripts/support/reference-pages.ts';
import { pages, root, textOf } from './blocks.ts';

/** What is no code: fenced blocks, and `code` within a line. */
const proseOf = (text: string) => text.replaceAll(/^( *)```[^]*?^\1```$/gm, '').replaceAll(/`[^`\n]*`/g, 'code');

test('every link within the repository leads to a file, and its anchor to a heading', () => {
  expect(pages().flatMap((page) => deadLinksIn(page, textOf(page)))).toEqual([]);
});

test('the pages that are made say what to do about every message, and their links lead somewhere', () => {
  const made = Object.entries(referencePages(root));
  expect(made.map(([name]) => name)).toEqual(['configuration.md', 'api.md', 'commands.md', 'messages.md']);
  expect(made.flatMap(([name, text]) => deadLinksIn(`dist/reference/${name}`, text))).toEqual([]);
});

function deadLinksIn(page: string, text: string): string[] {
  return [...proseOf(text).matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, link = '']) => link)
    .filter((link) => !/^[a-z]+:/.test(link) && !leadsSomewhere({ page, text }, link))
    .map((link) => `${page}: ${link}`);
}

/** A page that is made may have no file yet. */
function leadsSomewhere({ page, text }: { page: string; text: string }, link: string): boolean {
  const [path = '', anchor] = link.split('#');
  if (path === '') return anchorsOf(text).has(anchor ?? '');
  const target = normalize(join(dirname(page), path));
  if (!existsSync(join(root, target))) return false;
  if (anchor === undefined || statSync(join(root, target)).isDirectory()) return anchor === undefined;
  return !target.endsWith('.md') || anchorsOf(textOf(target)).has(anchor);
}

const anchorsOfText = new Map<string, Set<string>>();

/** As GitHub makes them of headings; the second of the same name gets -1. */
function anchorsOf(page: string): Set<string> {
  const known = anchorsOfText.get(page);
  if (known !== undefined) return known;
  const anchors = new Set<string>();
  anchorsOfText.set(page, anchors);
  const text = page.replaceAll(/^( *)```[^]*?^\1```$/gm, '');
  for (const [, heading = ''] of text.matchAll(/^#+ (.*)$/gm)) {
    const anchor = heading
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(/\s/g, '-');
    let again = 0;
    let free = anchor;
    while (anchors.has(free)) free = `${anchor}-${(again += 1)}`;
    anchors.add(free);
  }
  return anchors;
}

test('every page of docs/ begins by saying for whom it is, and stands in the reading order', () => {
  const order = textOf('docs/README.md');
  for (const page of pages('docs')) {
    const [, title = '', opening = ''] = /^# (.+)\n\n((?:.+\n)+)/.exec(textOf(page)) ?? [];
    expect([page, title]).not.toEqual([page, '']);
    if (page.startsWith('docs/decisions/') || page === 'docs/README.md') continue;
    expect(opening, page).toMatch(/\bfor\b/i);
    expect(order, `docs/README.md does not name ${page}`).toContain(`](${page.slice('docs/'.length)})`);
  }
});

test('every file that a page of docs/ names by its path is there, from the top, in src/ or in test/', () => {
  const missing = [...pages('docs'), 'CONTRIBUTING.md'].flatMap((page) =>
    [...textOf(page).matchAll(/`([a-z][\w.-]*\/[\w./-]*(?:\.(?:tsx?|json|sql|yml|md)|\/))`/g)]
      .map(([, path = '']) => path)
      .filter((path) => !/[A-Z]{4}|\bdist\//.test(path))
      .filter((path) => !['.', 'src', 'test'].some((top) => existsSync(join(root, top, path))))
      .map((path) => `${page}: ${path}`),
  );
  expect(missing).toEqual([]);
});

test('no page is longer than 20 KB, and no decision than 2 KB', () => {
  const most = (page: string) => (/^docs\/decisions\/\d/.test(page) ? 2 : 20) * 1024;
  expect(pages().filter((page) => statSync(join(root, page)).size > most(page))).toEqual([]);
});

test('docs/ has at most 32 pages and 60,000 words by hand, but for decisions and measurements', () => {
  const byHand = pages('docs').filter((page) => !/decisions|measurements/.test(page));
  expect(byHand.length).toBeLessThanOrEqual(32);
  const words = byHand.map((page) => textOf(page).split(/\s+/).length);
  expect(words.reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(60_000);
});
