import type { Lane, LaneBook, LaneScope } from './lane.ts';

/** This part of the slots is kept for scopes that have less under way than their share of it. So each finds a slot of its own. */
const KEPT = 1 / 8;
/** With fewer slots for each scope, none is kept. */
const MIN_SLOTS_TO_KEEP = 4;
/** Lanes that move may have this part of their scope's share before they answer. */
const MOVING = 3 / 4;
/** Of the slots for lanes that do not move, a scope may have at most this many times what it leaves to the others. */
const MAX_TIMES_FREE = 3;

/**
 * Whose turn it is at a free slot, where scopes share the instance: the scope that has the least under way for its weight. Taken one by
 * one, slots so come to what is called a weighted max-min share: what a scope does not want goes to the others.
 */
export class ScopeSlots {
  readonly #book: LaneBook;
  readonly #total: number;
  readonly #kept: ReadonlyMap<LaneScope, number>;
  /** Of the scopes that had something to send when it was asked last whose turn it is. */
  #activeWeights = Infinity;

  constructor(book: LaneBook, total: number) {
    this.#book = book;
    this.#total = total;
    const { scopes } = book;
    const areTooFew = total < MIN_SLOTS_TO_KEEP * scopes.length;
    const weights = weightOf(scopes);
    this.#kept = new Map(
      scopes.map((scope) => [
        scope,
        areTooFew ? 0 : Math.max(1, Math.floor((total * KEPT * scope.weight) / weights)),
      ]),
    );
  }

  /** Scopes that wait for a slot and may have one, the next one first. */
  inTurn(): readonly LaneScope[] {
    const { scopes, all } = this.#book;
    if (scopes.length === 1) return scopes;
    this.#activeWeights = weightOf(scopes.filter(({ waiting, slots }) => waiting > 0 || slots > 0));
    const free = this.#total - all.slots;
    const kept = scopes.reduce((sum, scope) => sum + this.#stillKept(scope), 0);
    return scopes
      .filter((scope) => scope.waiting > 0 && free > kept - this.#stillKept(scope))
      .sort((a, b) => a.slots / a.weight - b.slots / b.weight || a.lastTurnAt - b.lastTurnAt);
  }

  /** Whether lanes of this scope that do not move may have one slot more, if such lanes have so many in all. */
  leavesEnough({ slotsNotMoving }: LaneScope, most: number): boolean {
    const { scopes, slow, silent } = this.#book;
    if (scopes.length === 1) return true;
    return slotsNotMoving <= (most - slow.slots - silent.slots) * MAX_TIMES_FREE;
  }

  /**
   * Whether a lane may begin an attempt whatever the lanes of other scopes show. One that moves, as long as its scope has less than its
   * share; one that does not, within half of what is kept for its scope.
   */
  isWithinOwn({ scope, pace }: Lane): boolean {
    if (this.#book.scopes.length === 1) return false;
    if (!pace.isMoving) return scope.slotsNotMoving < Math.ceil((this.#kept.get(scope) ?? 0) / 2);
    const share = (this.#total * scope.weight) / this.#activeWeights;
    return scope.slots < share * MOVING && scope.slotsNotMoving < share / 2;
  }

  /** What waits for a scope beside what it has under way. */
  #stillKept(scope: LaneScope): number {
    return Math.max(0, (this.#kept.get(scope) ?? 0) - scope.slots);
  }
}

function weightOf(scopes: readonly LaneScope[]): number {
  return scopes.reduce((sum, { weight }) => sum + weight, 0);
}
