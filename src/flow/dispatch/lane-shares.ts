import type { Lane, LaneBook } from './lane.ts';

/** With at least this many slots a quarter is kept free; with fewer, a quarter of the time. */
const MIN_TO_SPLIT = 4;
/** A lane may have at most this many times the slots, or claims, that it leaves free. So there is always one for the next lane. */
export const MAX_TIMES_FREE = 3;
/** Once many attempts are unanswered, a moving lane may begin this share of the free slots before it answers again. */
const UNANSWERED_SHARE = 1 / 8;

/**
 * Which lane may begin an attempt, if a slot is free. Lanes that answer slowly leave slots to quick ones, and lanes that answer nothing
 * leave slots to both, however many they are. A lane with nothing under way may begin one attempt before another of its kind gets one
 * more.
 */
export class LaneShares {
  readonly #book: LaneBook;
  readonly #total: number;
  /** The most slots of lanes that do not move; and for the first attempt of one. */
  readonly #maxNotMoving: number;
  readonly #maxWithFirst: number;
  /** Of these, the most of lanes that answer nothing; for the first attempt of one that has hung, and of a new one. */
  readonly #maxSilent: number;
  readonly #maxSilentIfStalled: number;
  readonly #maxSilentIfNew: number;

  constructor(book: LaneBook, total: number) {
    this.#book = book;
    this.#total = total;
    const quarter = total < MIN_TO_SPLIT ? 0 : Math.ceil(total / 4);
    this.#maxNotMoving = total - quarter;
    this.#maxWithFirst = this.#maxNotMoving + Math.ceil(quarter / 2);
    this.#maxSilent = quarter === 0 ? total : Math.floor(total / 2);
    this.#maxSilentIfStalled = (this.#maxSilent + this.#maxNotMoving) >> 1;
    // One slot alone cannot be divided between new lanes and those that move.
    this.#maxSilentIfNew = quarter === 1 ? total : this.#maxNotMoving;
  }

  /** There are too few slots to keep some of them free. */
  get areTooFew(): boolean {
    return this.#maxNotMoving === this.#total;
  }

  mayBegin(lane: Lane): boolean {
    const { pace, underWay } = lane;
    if (pace.isMoving) return this.#mayBeginMoving(lane);
    if (underWay === 0) return this.#mayBeginFirst(lane);
    const room = this.roomOf(lane);
    return room > 0 && underWay <= room * MAX_TIMES_FREE;
  }

  /** How many more slots lanes like this one may take, if it does not move. */
  roomOf({ pace }: Lane): number {
    const { slow, silent } = this.#book;
    const left = this.#maxNotMoving - slow.slots - silent.slots;
    // Lanes that moved and hang by now may have taken more than they may as silent ones.
    if (pace.isSlow) return Math.max(left, this.#maxWithFirst - this.#maxNotMoving - slow.slots);
    return Math.min(left, this.#maxSilent - silent.slots);
  }

  #mayBeginFirst(lane: Lane): boolean {
    const { slow, silent } = this.#book;
    const isRoom = slow.slots + silent.slots < this.#maxWithFirst;
    if (lane.pace.isSlow) return isRoom || this.roomOf(lane) > 0;
    return isRoom && silent.slots < (lane.pace.isNew ? this.#maxSilentIfNew : this.#maxSilentIfStalled);
  }

  #mayBeginMoving({ pace, underWay }: Lane): boolean {
    const { all, silent } = this.#book;
    const free = this.#total - all.slots;
    if (free > this.#total - this.#maxNotMoving && silent.slots < this.#maxSilentIfStalled) return true;
    // The share grows with the attempts under way that began before the lane's last answer.
    return pace.unansweredSlots < Math.max(free * UNANSWERED_SHARE, 1 + (underWay - pace.unansweredSlots) / 2);
  }
}
