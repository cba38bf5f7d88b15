import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { DAY_MUTANTS } from './day-mutants.ts';

const read = (file: string) => readFileSync(new URL(`../../../../${file}`, import.meta.url), 'utf8');

it.each(DAY_MUTANTS)('$name finds what it breaks, once', ({ file, find }) => {
  expect(read(file).split(find).length - 1).toBe(1);
});
