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

interface State extends TurnsOptions {
  free: number;
  waiting: number;
  /** The key whose turn is next comes first. */
  lines: Map<string, Set<() => void>>;
}

/** Lets only so much go on at once, and no key hold up another. */
export function createTurns(options: TurnsOptions): Turns {
  const state: State = { ...options, free: options.places, waiting: 0, lines: new Map() };
  const leave = () => callNext(state);
  return {
    take: async (key, patience) => {
      if (state.free > 0) state.free -= 1;
      else if (!(await wait(state, key, patience))) return null;
      return leave;
    },
    waiting: () => state.waiting,
  };
}

/** Hands a place on, or keeps it free. */
function callNext(state: State): void {
  const [next] = state.lines;
  if (next === undefined) {
    state.free += 1;
    return;
  }
  const [key, line] = next;
  const [first] = line;
  state.lines.delete(key);
  state.lines.set(key, line);
  first?.();
}

function wait(state: State, key: string, { limitMs, signal }: Patience): Promise<boolean> {
  const line = state.lines.get(key) ?? new Set();
  const isFull = state.waiting >= state.mostWaiting || line.size >= state.mostOfKey;
  if (isFull || signal?.aborted === true) return Promise.resolve(false);
  state.lines.set(key, line);
  state.waiting += 1;
  return new Promise((resolve) => {
    const end = (hasPlace: boolean) => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', giveUp);
      state.waiting -= 1;
      line.delete(called);
      if (line.size === 0) state.lines.delete(key);
      resolve(hasPlace);
    };
    const called = () => end(true);
    const giveUp = () => end(false);
    const timer = setTimeout(giveUp, limitMs);
    signal?.addEventListener('abort', giveUp);
    line.add(called);
  });
}
