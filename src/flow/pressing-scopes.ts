import { REST, type ScopeShares } from '../core/access/scope-shares.ts';
import type { Clock } from '../runtime/clock.ts';
import { restAfter } from '../runtime/loop/pace.ts';

/**
 * Where scopes share the instance (FIRELOCK_SCOPES), and work is taken in batches, the oldest first: which scopes the next batch passes
 * over, since they had more than their share of a full one. So the work of the others does not wait until theirs is done. To find what
 * is behind theirs, the server reads all of theirs that is due: so three quarters of the time are for batches that pass over nothing.
 */
export class PressingScopes {
  readonly #shares: ScopeShares;
  readonly #clock: Clock;
  #pressing: readonly string[] = [];
  #passingOverSince = 0;
  #restUntil = -Infinity;

  constructor(shares: ScopeShares, clock: Clock) {
    this.#shares = shares.length === 0 ? [] : [...shares, REST];
    this.#clock = clock;
  }

  /** The prefixes of scopes that the next batch passes over. */
  toPassOver(): readonly string[] {
    this.#passingOverSince = this.#clock.monotonic();
    return this.#passingOverSince < this.#restUntil ? [] : this.#pressing;
  }

  /** Notes of which scopes the members of a batch were. */
  found(
    prefixes: readonly string[],
    { isFull, besideScopes }: { isFull: boolean; besideScopes: readonly string[] },
  ): void {
    if (besideScopes.length > 0) {
      const now = this.#clock.monotonic();
      this.#restUntil = now + Math.max(1, restAfter(now - this.#passingOverSince));
      return;
    }
    this.#pressing = isFull ? this.#aboveTheirShare(prefixes) : [];
  }

  /** None, where all are of scopes above their share. */
  #aboveTheirShare(prefixes: readonly string[]): string[] {
    const weights = this.#shares.reduce((sum, { weight }) => sum + weight, 0);
    const counts = Map.groupBy(prefixes, (prefix) => prefix);
    return this.#shares
      .filter(
        ({ prefix, weight }) => (counts.get(prefix)?.length ?? 0) > (prefixes.length * weight) / weights,
      )
      .map(({ prefix }) => prefix);
  }
}
