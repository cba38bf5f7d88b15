/**
 * Rows that others have locked are passed over, so that nobody is held up; one that is passed over again and again has to be waited for,
 * as it may be locked by somebody new at every look.
 */
export interface Patience {
  /** Those of `found` that are not `done`, and were so at this look and at the ones right before it. */
  over(found: readonly string[], done: ReadonlySet<string>): ReadonlySet<string>;
}

const LOOKS = 3;

export function createPatience(): Patience {
  let looks = new Map<string, number>();
  return {
    over: (found, done) => {
      const left = found.filter((key) => !done.has(key));
      looks = new Map(left.map((key) => [key, (looks.get(key) ?? 0) + 1]));
      return new Set(left.filter((key) => (looks.get(key) ?? 0) >= LOOKS));
    },
  };
}
