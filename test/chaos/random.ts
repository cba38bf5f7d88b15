/** Numbers that a seed repeats: the nemesis and the load draw from it, so that a campaign's plan can be had again. */
export interface Random {
  /** At least 0, less than 1. */
  next(): number;
  between(from: number, to: number): number;
  chance(probability: number): boolean;
  pick<T>(items: readonly T[]): T;
}

/** mulberry32; `label` makes streams of one seed independent of each other. */
export function createRandom(seed: number, label: string): Random {
  let state = seed >>> 0;
  for (const character of label) state = (Math.imul(state, 31) + (character.codePointAt(0) ?? 0)) >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return {
    next,
    between: (from, to) => from + next() * (to - from),
    chance: (probability) => next() < probability,
    pick: (items) => {
      const item = items[Math.floor(next() * items.length)];
      if (item === undefined) throw new Error('there is nothing to pick from');
      return item;
    },
  };
}
