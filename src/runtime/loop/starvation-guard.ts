/**
 * Rows that other transactions have locked are passed over, so that they hold up no other. A row that is passed over at every look
 * starves, since each time a new transaction may have it. The caller must wait for such a row.
 */
export interface StarvationGuard {
  /** Keys of `found` that are not `done`, and were so at this look and at the ones right before it. */
  starving(found: readonly string[], done: ReadonlySet<string>): ReadonlySet<string>;
}

const LOOKS = 3;

export function createStarvationGuard(): StarvationGuard {
  let looks = new Map<string, number>();
  return {
    starving: (found, done) => {
      const left = found.filter((key) => !done.has(key));
      looks = new Map(left.map((key) => [key, (looks.get(key) ?? 0) + 1]));
      return new Set(left.filter((key) => (looks.get(key) ?? 0) >= LOOKS));
    },
  };
}
