import { type ScopeShares, REST, shareOf } from '../core/access/scope.ts';

/** How many due schedules of one scope a batch may have. */
interface ScopeBatch {
  prefix: string;
  limit: number;
}

/** A batch is what the schedules of others wait for that come due meanwhile: so scopes with more due than that have this part of one. */
const PART = 1 / 4;

/**
 * How many schedules of each scope (FIRELOCK_SCOPES) are locked at once, while more are due than one batch takes. The oldest ones would be
 * those of one scope, perhaps for a long time.
 */
export class PlanTurns {
  readonly #shares: ScopeShares;
  readonly #batch: number;
  /** Scopes of which the last full batch had as many as it might. */
  #full: ReadonlySet<string> = new Set();

  constructor(shares: ScopeShares, batch: number) {
    this.#shares = shares.length === 0 ? [] : [...shares, REST];
    this.#batch = batch;
  }

  /** Null: the oldest ones, whosever they are. */
  limits(): ScopeBatch[] | null {
    return this.#full.size === 0 ? null : this.#shares.map(({ prefix }) => this.#turnOf(prefix));
  }

  /** Notes what was locked by these limits. */
  locked(ids: readonly string[], isFull: boolean): void {
    if (this.#shares.length === 0) return;
    const counts = Map.groupBy(isFull ? ids : [], (id) => shareOf(this.#shares, id).prefix);
    const full = [...counts].filter(([prefix, { length }]) => length >= this.#turnOf(prefix).limit);
    this.#full = new Set(full.map(([prefix]) => prefix));
  }

  #turnOf(prefix: string): ScopeBatch {
    const part = this.#full.has(prefix) ? PART / this.#full.size : 1 / this.#shares.length;
    return { prefix, limit: Math.ceil(this.#batch * part) };
  }
}
