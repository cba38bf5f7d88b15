import type { Clock } from '../runtime/clock.ts';
import { AT_WORK_MS } from './dispatch/scope-pace.ts';
import { REST, type ScopeShare, type ScopeShares, shareOf } from '../core/access/scope-shares.ts';

/** How many due schedules of one scope a batch may have. */
interface ScopeBatch {
  prefix: string;
  limit: number;
}

/** Of a batch: what a pressing scope has of it. The schedules of others that come due meanwhile wait for one batch at most. */
const PRESSING_PART = 1 / 8;
/** Between two batches of a pressing scope, while schedules of others come due: else planning and recording it keep the database busy. */
const PAUSE_MS = 25;

/**
 * Where scopes share the instance: how many schedules of each are locked at once, while more are due than one batch takes. Then the oldest
 * ones would be those of one scope, perhaps for a long time.
 */
export class PlanTurns {
  readonly #shares: ScopeShares;
  readonly #batch: number;
  /** Scopes of which more was due than they might have, at the last look. */
  #pressing = new Set<string>();
  /** When a schedule of a scope that did not press was locked last. */
  #othersAt = -Infinity;
  readonly #clock: Pick<Clock, 'monotonic'>;

  constructor(shares: ScopeShares, batch: number, clock: Pick<Clock, 'monotonic'>) {
    this.#shares = shares.length === 0 ? [] : [...shares, REST];
    this.#batch = batch;
    this.#clock = clock;
  }

  /** How long the next batch waits, though more is due. */
  pauseMs(): number {
    const isAnotherAtWork = this.#clock.monotonic() - this.#othersAt < AT_WORK_MS;
    return this.#pressing.size > 0 && isAnotherAtWork ? PAUSE_MS : 0;
  }

  /** Null: the oldest ones, whosever they are. A scope that does not press still finds its share of a batch, and presses only beyond it. */
  limits(): ScopeBatch[] | null {
    if (this.#pressing.size === 0) return null;
    const pressing = this.#shares.filter(({ prefix }) => this.#pressing.has(prefix));
    return this.#shares.map((share) => ({
      prefix: share.prefix,
      limit: pressing.includes(share)
        ? Math.ceil(this.#limitOf(share, pressing) * PRESSING_PART)
        : this.#limitOf(share, this.#shares),
    }));
  }

  /** Notes what was locked by these limits. */
  locked(limits: readonly ScopeBatch[] | null, ids: readonly string[], isFull: boolean): void {
    if (this.#shares.length === 0) return;
    const counts = new Map<string, number>();
    for (const id of ids) {
      const { prefix } = shareOf(this.#shares, id);
      counts.set(prefix, (counts.get(prefix) ?? 0) + 1);
    }
    const limitOf = new Map(limits?.map(({ prefix, limit }) => [prefix, limit]));
    const pressing = this.#shares.filter((share) => {
      const limit = limitOf.get(share.prefix) ?? this.#limitOf(share, this.#shares);
      return isFull && (counts.get(share.prefix) ?? 0) >= limit;
    });
    this.#pressing = new Set(pressing.map(({ prefix }) => prefix));
    if ([...counts.keys()].some((prefix) => !this.#pressing.has(prefix)))
      this.#othersAt = this.#clock.monotonic();
  }

  #limitOf({ weight }: ScopeShare, among: ScopeShares): number {
    return Math.ceil((this.#batch * weight) / among.reduce((sum, share) => sum + share.weight, 0));
  }
}
