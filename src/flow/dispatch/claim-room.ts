import type { ClaimRequest } from '../../store/runs/claims/claims.ts';
import type { ClaimedRun } from '../../store/runs/claims/claimed-run.ts';
import type { LaneClaim, Lane, LaneBook } from './lane.ts';
import { LaneShares, MAX_TIMES_FREE } from './lane-shares.ts';

interface ClaimRoomDeps {
  book: LaneBook;
  /** Attempts under way at once: in all, and per lane. */
  total: number;
  perLane: number;
}

/** Claims per slot of the whole. */
const CLAIMS_PER_SLOT = 32;
/** Each with a payload of 64 KiB, perhaps. */
const MAX_AT_ONCE = 1_000;

export type Room = Pick<ClaimRequest, 'limit' | 'freeByLane' | 'freePerLane'>;

/** How many claims each lane may have here. No lane fills the memory alone, and those that do not move leave a quarter of it. */
export class ClaimRoom {
  readonly #deps: ClaimRoomDeps;
  readonly #shares: LaneShares;
  readonly #max: number;
  readonly #maxNotMoving: number;
  /** Lanes that had more to claim than there was room for, at the last look at the database. */
  #lanesWithMore: ReadonlySet<string> = new Set();
  #anyHasMore = false;

  constructor(deps: ClaimRoomDeps) {
    this.#deps = deps;
    this.#shares = new LaneShares(deps.book, deps.total);
    this.#max = deps.total * CLAIMS_PER_SLOT;
    this.#maxNotMoving = Math.floor((this.#max * 3) / 4);
  }

  /** Takes room for one claim, where there is some. */
  take(lane: Lane): boolean {
    if (this.#freeOf(lane) <= 0) return false;
    this.#deps.book.addClaims(lane, 1);
    return true;
  }

  /** The same for a run that nothing has put in order: not where the last look left some of the lane, which may be more urgent. */
  takeIfNoneIsLeft(lane: Lane): boolean {
    return !this.#lanesWithMore.has(lane.name) && this.take(lane);
  }

  /** What may be claimed now; null: nothing. */
  request(): Room | null {
    const { book, perLane } = this.#deps;
    const forNotMoving = this.#freeForNotMoving();
    // A lane that this process has not seen yet counts as not moving. Only the statement learns its name.
    const isOpen = forNotMoving > 0;
    const free = Math.ceil((this.#free() * MAX_TIMES_FREE) / (MAX_TIMES_FREE + 1));
    const limit = Math.min(MAX_AT_ONCE, free, isOpen ? forNotMoving : Infinity);
    if (limit <= 0) {
      this.#anyHasMore = true;
      return null;
    }
    const freeByLane = new Map<string, number>();
    for (const lane of book.lanes()) {
      const { pace } = lane;
      const isLikeOthers = lane.claims === 0 && isOpen && (pace.isNew || pace.isMoving);
      if (!isLikeOthers) freeByLane.set(lane.name, this.#freeOf(lane));
    }
    return { limit, freeByLane, freePerLane: isOpen ? perLane : 0 };
  }

  /**
   * The same for runs that nothing has put in order of priority. A lane that moves sends within a moment what it claims, by priority;
   * any other lane gets only the most urgent of what is ready.
   */
  requestOfMoving(): Room | null {
    const room = this.request();
    if (!room) return null;
    const moving = [...room.freeByLane].filter(([name]) => this.#deps.book.of(name).pace.isMoving);
    return { limit: room.limit, freeByLane: new Map(moving), freePerLane: 0 };
  }

  /** Notes what was claimed of what might have been. */
  claimed({ limit, freeByLane, freePerLane }: Room, runs: readonly ClaimedRun[]): void {
    const left = new Map(freeByLane);
    for (const { lane } of runs) left.set(lane, (left.get(lane) ?? freePerLane) - 1);
    this.#anyHasMore = runs.length >= limit;
    this.#lanesWithMore = new Set([...left.keys()].filter((lane) => (left.get(lane) ?? 0) <= 0));
  }

  /** Whether there may be something to claim in the room that a claim of this lane left. */
  mayHaveMore({ name, pace }: Lane): boolean {
    if (this.#anyHasMore) return true;
    if (pace.isMoving || pace.isSlow) return this.#lanesWithMore.has(name);
    // They share what there is for them, and each of their attempts takes long: many are claimed at once, not one by one.
    const { silent } = this.#deps.book;
    return this.#lanesWithMore.size > 0 && silent.waiting * 2 <= silent.lanes;
  }

  /** The least urgent waiting claims of a lane whose target answers nothing, beyond the slots that it can use. It may have moved before. */
  surplusOf(lane: Lane): readonly LaneClaim[] {
    if (!lane.pace.isStalled) return [];
    const surplus = Math.min(lane.waiting.length, lane.claims - this.#shareOf(lane));
    return surplus > 0 ? lane.waiting.slice(-surplus) : [];
  }

  #free(): number {
    return this.#max - this.#deps.book.all.claims;
  }

  #freeOf(lane: Lane): number {
    const forAny = Math.min(this.#shareOf(lane), this.#free() * MAX_TIMES_FREE) - lane.claims;
    return lane.pace.isMoving ? forAny : Math.min(forAny, this.#freeForNotMoving());
  }

  #freeForNotMoving(): number {
    const { slow, silent } = this.#deps.book;
    return this.#maxNotMoving - slow.claims - silent.claims;
  }

  /** A lane that does not move gets no more claims than it can get slots. */
  #shareOf(lane: Lane): number {
    const { pace, underWay, claims } = lane;
    const { book, perLane } = this.#deps;
    if (pace.isMoving || pace.isNew) return perLane + pace.ahead(perLane);
    const lanes = (pace.isSlow ? book.slow : book.silent).lanes + (claims === 0 ? 1 : 0);
    const slots = Math.max(1, Math.floor(this.#shares.roomOf(lane) / lanes));
    return Math.min(perLane, underWay + slots) + pace.ahead(perLane);
  }
}
