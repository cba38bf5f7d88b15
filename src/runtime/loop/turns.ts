interface Turns {
  /**
   * A place, to be left once. Those that wait stand in the line of their key, and the lines take turns.
   * Null: too many wait already, or it was none's turn in time, or who asked has gone.
   */
  take(key: string, patience: Patience): Promise<(() => void) | null>;
  waiting(): number;
}

interface Patience {
  limitMs: number;
  /** Aborted when the one that asks has gone. */
  signal?: AbortSignal;
}

interface TurnsOptions {
  /** How much goes on at once. */
  places: number;
  mostWaiting: number;
  /** Of these, with the same key. */
  mostOfKey: number;
}

/** Lets only so much go on at once, and no key hold up another. */
// eslint-disable-next-line max-lines-per-function -- a closure: its functions share its state, and are short
export function createTurns({ places, mostWaiting, mostOfKey }: TurnsOptions): Turns {
  let free = places;
  let waiting = 0;
  /** The key whose turn is next comes first. */
  const lines = new Map<string, Set<() => void>>();

  function leave(): void {
    const [next] = lines;
    if (next === undefined) {
      free += 1;
      return;
    }
    const [key, line] = next;
    const [first] = line;
    lines.delete(key);
    lines.set(key, line);
    first?.();
  }

  function wait(key: string, { limitMs, signal }: Patience): Promise<boolean> {
    const line = lines.get(key) ?? new Set();
    if (waiting >= mostWaiting || line.size >= mostOfKey || signal?.aborted === true)
      return Promise.resolve(false);
    lines.set(key, line);
    waiting += 1;
    return new Promise((resolve) => {
      const end = (hasPlace: boolean) => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', giveUp);
        waiting -= 1;
        line.delete(called);
        if (line.size === 0) lines.delete(key);
        resolve(hasPlace);
      };
      const called = () => end(true);
      const giveUp = () => end(false);
      const timer = setTimeout(giveUp, limitMs);
      signal?.addEventListener('abort', giveUp);
      line.add(called);
    });
  }

  return {
    take: async (key, patience) => {
      if (free > 0) free -= 1;
      else if (!(await wait(key, patience))) return null;
      return leave;
    },
    waiting: () => waiting,
  };
}
