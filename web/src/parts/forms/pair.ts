import { escaped } from '../differences/difference.ts';

export type Pair = readonly [name: string, value: string];

/** Those of which something is typed. */
export function typedPairs(pairs: readonly Pair[]): Pair[] {
  return pairs.filter(([name, value]) => name + value !== '');
}

/** An object has each name once, so the daemon cannot say it. */
export function twice(pairs: readonly Pair[], path: string): { path: string; message: string }[] {
  const names = pairs.map(([name]) => name).filter((name) => name !== '');
  const again = names.filter((name, index) => names.indexOf(name) !== index);
  return again.map((name) => ({ path, message: `${name} is there twice` }));
}

/** Whether it is about the value of one of these names. */
export function isOfPairs(fault: { path: string }, path: string, pairs: readonly Pair[]): boolean {
  return pairs.some(([name]) => `${fault.path}/`.startsWith(`${path}/${escaped(name)}/`));
}
