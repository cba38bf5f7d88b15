interface HalvingWork<T> {
  /** Does all items, or throws and has done none. */
  work: (items: readonly T[]) => Promise<void>;
  /** Whether the error is about one of the items, so that the others can be done without it. */
  isRefused: (error: unknown) => boolean;
  /** Called for the one item that was refused alone. */
  setAside: (item: T, error: unknown) => Promise<void> | void;
}

/**
 * Does a batch. If it is refused, halves it down to the one item at fault, and sets that item aside, so that it holds up no other. Any
 * other error is thrown, once both halves have had their turn.
 */
export async function inHalves<T>(items: readonly T[], halving: HalvingWork<T>): Promise<void> {
  const [only, ...others] = items;
  if (only === undefined) return;
  try {
    await halving.work(items);
  } catch (error) {
    if (!halving.isRefused(error)) throw error;
    if (others.length === 0) {
      await halving.setAside(only, error);
      return;
    }
    const half = Math.ceil(items.length / 2);
    await eachInTurn([items.slice(0, half), items.slice(half)], (part) => inHalves(part, halving));
  }
}

/** Does each part, whatever happened to the parts before it; then throws the first error. */
export async function eachInTurn<T>(parts: Iterable<T>, work: (part: T) => Promise<void>): Promise<void> {
  const failures: unknown[] = [];
  for (const part of parts) await work(part).catch((error: unknown) => failures.push(error));
  if (failures.length > 0) throw failures[0];
}
