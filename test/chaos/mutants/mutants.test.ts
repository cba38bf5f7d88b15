import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { MUTANTS } from './mutants.ts';

it.each(MUTANTS)('$name finds what it changes, once', ({ edits }) => {
  const found = edits.map(({ file, find }) => {
    const text = readFileSync(new URL(`../../../${file}`, import.meta.url), 'utf8');
    return { file, times: text.split(find).length - 1 };
  });
  expect(found).toEqual(edits.map(({ file }) => ({ file, times: 1 })));
});
