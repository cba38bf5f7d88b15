import { expect, it } from 'vitest';
import { Line, LineMember } from '../../../src/runtime/loop/line.ts';

class Named extends LineMember<Named> {
  readonly name: string;

  constructor(name: string) {
    super();
    this.name = name;
  }
}

it('a line lets out what stands anywhere in it, and knows no more of that', () => {
  const line = new Line<Named>();
  const [a, b, c, d] = ['a', 'b', 'c', 'd'].map((name) => new Named(name)) as [Named, Named, Named, Named];
  const names = () => line.all().map(({ name }) => name);
  for (const one of [a, b, c, d]) line.push(one);
  expect([names(), line.length, line.first]).toEqual([['a', 'b', 'c', 'd'], 4, a]);

  for (const one of [b, a, d]) line.remove(one);
  expect([names(), line.length, line.first]).toEqual([['c'], 1, c]);
  for (const one of [a, b, d]) expect(one).toMatchObject({ line: null, before: null, behind: null });

  line.remove(c);
  expect([names(), line.length, line.first]).toEqual([[], 0, null]);
  line.push(b);
  expect([names(), b.line === line]).toEqual([['b'], true]);
});
