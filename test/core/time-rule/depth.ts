/** `npm run test:time` sets it: random tests of time go as deep as they can. Else they do a part, which tells of most faults. */
const IS_DEEP = process.env['FIRELOCK_TIME_SHARDS'] === 'all';

/** The numbers of the shards to do: the first, or all. */
export function shardsOf(count: number): number[] {
  return IS_DEEP ? Array.from({ length: count }, (_, shard) => shard) : [0];
}

/** How many random cases to do: half of these, or all. */
export function casesOf(count: number): number {
  return IS_DEEP ? count : count / 2;
}
