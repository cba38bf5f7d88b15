import { AsyncLocalStorage } from 'node:async_hooks';

export interface Turns {
  /**
   * A place, to be left once. Those that wait stand in the line of their key, and the lines take turns.
   * Null: too many wait already, or it was none's turn in time, or who asked has gone.
   */
  take(key: string, patience?: Patience): Promise<(() => void) | null>;
  waiting(): number;
}

interface Patience {
  /** Absent: it waits until it is its turn. */
  limitMs?: number;
  /** Of the places, so many at once for this key; absent: all. */
  most?: number;
  /** Aborted when the one that asks has gone. */
  signal?: AbortSignal;
}

interface TurnsOptions {
  /** How much goes on at once. */
  places: number;
  /** Beyond that, the longest line gives up its newest for one whose line is shorter. */
  mostWaiting: number;
  /** Of these, with the same key. */
  mostOfKey: number;
}

interface Waiter {
  end: (hasPlace: boolean) => void;
  most: number;
}

interface State extends TurnsOptions {
  free: number;
  waiting: number;
  taken: Map<string, number>;
  /** The key whose turn is next comes first. */
  lines: Map<string, Set<Waiter>>;
}

/** Lets only so much go on at once, and no key hold up another. */
export function createTurns(options: TurnsOptions): Turns {
  const state: State = { ...options, free: options.places, waiting: 0, taken: new Map(), lines: new Map() };
  return {
    take: async (key, patience = {}) => {
      if (mayTake(state, key, patience.most)) take(state, key);
      else if (!(await wait(state, key, patience))) return null;
      return () => leave(state, key);
    },
    waiting: () => state.waiting,
  };
}

function mayTake({ free, taken }: State, key: string, most = Infinity): boolean {
  return free > 0 && (taken.get(key) ?? 0) < most;
}

function take(state: State, key: string): void {
  state.free -= 1;
  state.taken.set(key, (state.taken.get(key) ?? 0) + 1);
}

/** Hands the place on, or keeps it free. */
function leave(state: State, left: string): void {
  const { taken, lines } = state;
  state.free += 1;
  const rest = (taken.get(left) ?? 0) - 1;
  if (rest > 0) taken.set(left, rest);
  else taken.delete(left);
  for (const [key, line] of lines) {
    const [first] = line;
    if (first === undefined || !mayTake(state, key, first.most)) continue;
    lines.delete(key);
    lines.set(key, line);
    take(state, key);
    first.end(true);
    return;
  }
}

function wait(state: State, key: string, { limitMs, most = Infinity, signal }: Patience): Promise<boolean> {
  const line = state.lines.get(key) ?? new Set();
  if (signal?.aborted === true || !mayWait(state, line)) return Promise.resolve(false);
  state.lines.set(key, line);
  state.waiting += 1;
  return new Promise((resolve) => {
    const end = (hasPlace: boolean) => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', giveUp);
      state.waiting -= 1;
      line.delete(waiter);
      if (line.size === 0) state.lines.delete(key);
      resolve(hasPlace);
    };
    const waiter = { end, most };
    const giveUp = () => end(false);
    const timer = limitMs === undefined ? undefined : setTimeout(giveUp, limitMs);
    signal?.addEventListener('abort', giveUp);
    line.add(waiter);
  });
}

function mayWait({ lines, waiting, mostWaiting, mostOfKey }: State, line: ReadonlySet<Waiter>): boolean {
  if (line.size >= mostOfKey || waiting < mostWaiting) return line.size < mostOfKey;
  let longest = line;
  for (const other of lines.values()) if (other.size > longest.size) longest = other;
  if (longest.size <= line.size + 1) return false;
  [...longest].at(-1)?.end(false);
  return true;
}

/** Whose work this is, for what many use at once. */
interface Asker {
  /** They take turns by it. */
  key: string;
  /** It has no more than half of the places: what it asks for may take long, and is not urgent. */
  isModest: boolean;
}

const askers = new AsyncLocalStorage<Asker>();

/** All that `work` does, and what follows from it, is on behalf of this asker. */
export function onBehalfOf<T>(asker: Asker, work: () => T): T {
  return askers.run(asker, work);
}

/** Undefined: it is this instance's own work. */
export function currentAsker(): Asker | undefined {
  return askers.getStore();
}
