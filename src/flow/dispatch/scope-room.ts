import type { LaneBook, LaneScope } from './lane.ts';

/** Half of the room is divided by weight; of the other half, a scope may take at most this many times what it leaves. */
const MAX_TIMES_FREE = 3;

/** How many more claims a scope may have of so many: so none fills the memory, and each finds room, however much is due of another. */
export class ScopeRoom {
  readonly #scopes: readonly LaneScope[];
  readonly #ownOf: ReadonlyMap<LaneScope, number>;
  readonly #shared: number;
  readonly #claimsOf: (scope: LaneScope) => number;

  constructor({ scopes }: LaneBook, most: number, claimsOf: (scope: LaneScope) => number) {
    const weights = scopes.reduce((sum, { weight }) => sum + weight, 0);
    this.#scopes = scopes;
    this.#ownOf = new Map(
      scopes.map((scope) => [scope, Math.floor((most * scope.weight) / weights / 2)] as const),
    );
    this.#shared = most - [...this.#ownOf.values()].reduce((sum, own) => sum + own, 0);
    this.#claimsOf = claimsOf;
  }

  /** Infinity where no scopes share the instance. */
  freeOf(scope: LaneScope): number {
    if (this.#scopes.length === 1) return Infinity;
    const beyond = this.#beyondOwn(scope);
    const free = this.#shared - this.#scopes.reduce((sum, each) => sum + this.#beyondOwn(each), 0);
    const ofShared = Math.floor((free * MAX_TIMES_FREE - beyond) / (MAX_TIMES_FREE + 1));
    const ofOwn = (this.#ownOf.get(scope) ?? 0) - this.#claimsOf(scope);
    return Math.max(0, ofOwn) + Math.max(0, ofShared);
  }

  #beyondOwn(scope: LaneScope): number {
    return Math.max(0, this.#claimsOf(scope) - (this.#ownOf.get(scope) ?? 0));
  }
}
