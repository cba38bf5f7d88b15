import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { firesAfter } from './support.ts';

interface Example {
  expr: string;
  tz: string;
  from: string;
  next: string[];
  class: string;
}

const examples = readFileSync(new URL('examples.jsonl', import.meta.url), 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as Example);
const classes = [...new Set(examples.map((example) => example.class))];

describe('the fire times of every example', () => {
  it('are compared at all', () => {
    expect(examples).toHaveLength(160);
    expect(classes).toHaveLength(8);
  });

  it.each(classes)('are as given: %s', (name) => {
    const mine = examples.filter((example) => example.class === name);
    const found = mine.map(({ expr, tz, from, next }) => ({
      expr,
      tz,
      from,
      next: firesAfter(expr, tz, from, Math.max(next.length, 1)),
      class: name,
    }));
    expect(found).toEqual(mine);
  });
});
