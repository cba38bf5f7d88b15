import { codeOf } from '../core/database-trouble.ts';

/**
 * What the pools of one process take of the connections that the server gives: each has its first before any has another, and what
 * listens comes last.
 */
export interface ConnectionBudget {
  /** A pool is opening its first connection, or could not. */
  lacksFirst(pool: object): void;
  hasFirst(pool: object): void;
  /** Takes one beyond a pool's first; false: work has to wait for those that are there. */
  takeSpare(): boolean;
  returnSpare(): void;
  /** More of them are open than should be: whoever has an idle one closes it. */
  isOver(): boolean;
  /** A connection could not be opened: if the server gives no more, those that can be done without are given back. */
  failed(error: unknown, what: 'first' | 'other'): void;
  /** So many more would the server give. */
  learnFree(free: number): void;
  /** Every pool has its first. */
  hasAllFirsts(): boolean;
  /** Called when there are connections to give back, or to take. */
  onChange(listener: () => void): void;
  /** Called when a pool does not get its first. */
  onScarce(listener: () => void): void;
}

/** The server has no connection left, for anybody, or for this database or role. */
const TOO_MANY = '53300';
/** What another instance begins with: one for each purpose, and one that listens. */
const TO_BEGIN_WITH = 5;

export function createConnectionBudget(): ConnectionBudget {
  const missing = new Set<object>();
  const [changed, scarce]: (() => void)[][] = [[], []];
  let spares = 0;
  let most = Infinity;
  const tell = (listeners: readonly (() => void)[] = []) => listeners.forEach((listener) => listener());

  return {
    lacksFirst: (pool) => void missing.add(pool),
    hasFirst: (pool) => {
      if (missing.delete(pool) && missing.size === 0) tell(changed);
    },
    takeSpare: () => {
      if (missing.size > 0 || spares >= most) return false;
      spares += 1;
      return true;
    },
    returnSpare: () => void (spares -= 1),
    isOver: () => spares > most,
    failed: (error, what) => {
      if (!isTooMany(error)) return;
      most = what === 'first' ? 0 : Math.max(0, Math.min(most, spares - 1));
      tell(changed);
      if (what === 'first') tell(scarce);
    },
    learnFree: (free) => {
      most = Math.max(0, spares + free - TO_BEGIN_WITH);
      tell(changed);
    },
    hasAllFirsts: () => missing.size === 0,
    onChange: (listener) => void changed?.push(listener),
    onScarce: (listener) => void scarce?.push(listener),
  };
}

export function isTooMany(error: unknown): boolean {
  return codeOf(error) === TOO_MANY;
}
