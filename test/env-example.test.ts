import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { readConfig } from '../src/config/config.ts';
import { VARIABLES } from '../src/config/variables.ts';

const entries = readEntries();

test('.env.example lists every variable that the daemon knows, each with one comment line', () => {
  expect(entries.map((entry) => entry.name).sort()).toEqual(Object.keys(VARIABLES).sort());
});

test('.env.example shows the defaults', () => {
  const shown = entries.filter((entry) => !entry.name.endsWith('DATABASE_URL'));
  expect(readConfig(Object.fromEntries(shown.map(({ name, value }) => [name, value])))).toEqual(readConfig({}));
  expect(readConfig({})).toHaveProperty('config');
});

test('.env.example shows URLs that are accepted', () => {
  const urls = entries.filter((entry) => entry.name.endsWith('DATABASE_URL'));
  expect(readConfig(Object.fromEntries(urls.map(({ name, value }) => [name, value])))).toHaveProperty('config');
});

test('.env.example names the ranges that are checked', () => {
  for (const { name, comment } of entries) {
    const range = /\d+ to \d+/.exec(VARIABLES[name].hint);
    if (range !== null) expect(comment, name).toContain(range[0]);
  }
});

interface Entry {
  name: keyof typeof VARIABLES;
  value: string;
  comment: string;
}

/** A comment line and, under it, the commented-out variable. */
function readEntries(): Entry[] {
  const text = readFileSync(new URL('../.env.example', import.meta.url), 'utf8');
  return [...text.matchAll(/^\n# (.*)\n# ([A-Z_]+)=(.*)$/gm)].map(([, comment = '', name = '', value = '']) => {
    return { name: name as keyof typeof VARIABLES, value, comment };
  });
}
