/**
 * Guarantees: no more attempts are under way than the instance and each lane may have. Lanes take turns at free slots. Lanes that
 *   stand still leave a quarter of all slots to lanes that move. Nothing starts while the lease does not hold.
 * Transaction: none; this is memory.
 * If the process dies here: what waited is still claimed by it, and pending.
 */
import type { Clock } from '../../runtime/clock.ts';
import { Line } from '../../runtime/loop/line.ts';
import type { LaneClaim, Lane, LaneBook } from './lane.ts';
import { type AttemptEnd, HANGS_MS } from './lane-pace.ts';

interface LanesDeps {
  book: LaneBook;
  clock: Clock;
  /** Attempts under way at once: in all, and per lane. */
  total: number;
  perLane: number;
  send: (claim: LaneClaim) => void;
  /** Asked before each start; false: it stays where it is. */
  mayStart: () => boolean;
}

/** A moving lane may begin this share of the free slots of the last quarter before it answers again. */
const UNANSWERED_SHARE = 1 / 8;
/** If others wait too, the turn of a lane that stands still comes this much later. So it is still tried from time to time. */
const STANDS_BACK_MS = 1_000;
/** With at least this many slots a quarter is kept free; with fewer, a quarter of the time. */
const MIN_TO_SPLIT = 4;

export function slotsForStalled(total: number): number {
  return total - (total < MIN_TO_SPLIT ? 0 : Math.ceil(total / 4));
}

/** Claims that wait for slots. */
export class Lanes {
  readonly #deps: LanesDeps;
  /** The most that lanes which do not move may have under way together. */
  readonly #maxStalled: number;
  /** Below this many slots, a lane without any answer yet may begin one attempt; below a quarter, as many as it wants. */
  readonly #maxToShow: number;
  readonly #quarter: number;
  /** Lanes with something to send and room for it: those that move or may come to, and those that stand still. */
  readonly #forward = new Line<Lane>();
  readonly #back = new Line<Lane>();
  /** Attempts under way that do not hang, the oldest first. */
  readonly #young = new Line<LaneClaim>();
  /** Monotonic: until then, every slot is offered to moving lanes first. */
  #restsUntil = -Infinity;
  #paused = false;

  constructor(deps: LanesDeps) {
    this.#deps = deps;
    this.#maxStalled = slotsForStalled(deps.total);
    this.#maxToShow = this.#maxStalled + Math.floor((deps.total - this.#maxStalled) / 2);
    this.#quarter = Math.ceil(deps.total / 4);
  }

  /** To be sent by priority, then by when it was due; what is added together is started once all of it is there. */
  add(claims: readonly LaneClaim[]): void {
    for (const claim of claims) this.#enqueue(claim);
    this.start();
  }

  /** The attempt that was sent has ended: its slot is free. */
  ended(claim: LaneClaim, end: AttemptEnd, durationMs: number): void {
    const { book, clock } = this.#deps;
    const { lane } = claim;
    claim.line?.remove(claim);
    lane.pace.ended(claim, end, durationMs);
    book.addUnderWay(lane, -1);
    if (!lane.pace.isMoving) this.#rest(clock.monotonic(), claim);
    this.#place(lane);
    this.start();
  }

  /** Starts what may be started by now: `mayStart` has changed its mind, say, or a lane has been found to stand still. */
  start(): void {
    const { book, clock, total, mayStart } = this.#deps;
    const now = clock.monotonic();
    this.#look(now);
    if (book.all.waiting === 0 || this.#paused) return;
    while (book.all.slots < total) {
      const lane = this.#next(now);
      if (!lane || !mayStart()) return;
      this.#startFrom(lane, now);
    }
  }

  /** From now on, nothing more starts. */
  pause(): void {
    this.#paused = true;
  }

  /** Removes the waiting claims that the filter picks. */
  takeOut(filter: (claim: LaneClaim) => boolean): LaneClaim[] {
    const taken: LaneClaim[] = [];
    for (const lane of this.#deps.book.lanes()) {
      if (!lane.waiting.some(filter)) continue;
      const left = lane.waiting.filter((claim) => !filter(claim));
      taken.push(...lane.waiting.filter(filter));
      const count = left.length - lane.waiting.length;
      lane.waiting.splice(0, Infinity, ...left);
      this.#deps.book.addWaiting(lane, count);
      this.#place(lane);
    }
    return taken;
  }

  /** Notes which attempts hang by now. */
  #look(now: number): void {
    for (let claim = this.#young.first; claim && now - claim.beganAt > HANGS_MS; claim = this.#young.first) {
      this.#young.remove(claim);
      claim.lane.pace.hangs(claim);
      this.#deps.book.recount(claim.lane);
      this.#place(claim.lane);
    }
  }

  #enqueue(claim: LaneClaim): void {
    const { book, clock } = this.#deps;
    const { lane } = claim;
    if (lane.waiting.length === 0) lane.since = clock.monotonic();
    claim.state = 'awaitsSlot';
    lane.waiting.splice(placeOf(claim, lane.waiting), 0, claim);
    book.addWaiting(lane, 1);
    this.#place(lane);
  }

  #startFrom(lane: Lane, now: number): void {
    const { book, send } = this.#deps;
    const claim = lane.waiting.shift();
    if (!claim) return;
    book.addWaiting(lane, -1);
    lane.since = now;
    claim.state = 'sent';
    claim.beganAt = now;
    this.#young.push(claim);
    lane.pace.began(claim);
    book.addUnderWay(lane, 1);
    // At the end of the line.
    lane.line?.remove(lane);
    this.#place(lane);
    send(claim);
  }

  /** Puts a lane into the line where it belongs by now. */
  #place(lane: Lane): void {
    const { waiting, underWay, pace } = lane;
    const mayCome = waiting.length > 0 && underWay < this.#deps.perLane;
    const line = !mayCome ? null : pace.isMoving || pace.isUnknown ? this.#forward : this.#back;
    if (line === lane.line) return;
    lane.line?.remove(lane);
    line?.push(lane);
  }

  /** The lane whose turn it is at a free slot; null: the slot stays free. */
  #next(now: number): Lane | null {
    const forward = this.#nextForward();
    const { book, total } = this.#deps;
    if (!this.#back.first || book.stalled.slots >= this.#maxStalled) return forward;
    const back = fewestUnderWay(this.#back.first);
    if (!forward) return back;
    const share = Math.max(1, total / book.all.lanes);
    const isDue = now >= this.#restsUntil && back.since + STANDS_BACK_MS <= forward.since;
    return isDue && back.underWay < share ? back : forward;
  }

  #nextForward(): Lane | null {
    for (let lane = this.#forward.first; lane; lane = lane.behind) if (this.#mayGo(lane)) return lane;
    return null;
  }

  #mayGo({ pace, underWay }: Lane): boolean {
    const { book, total } = this.#deps;
    if (!pace.isMoving) return book.stalled.slots < (underWay === 0 ? this.#maxToShow : this.#quarter);
    const free = total - book.all.slots;
    if (free > total - this.#maxStalled) return true;
    // The share grows with the attempts under way that began before the lane's last answer.
    return pace.owed < Math.max(free * UNANSWERED_SHARE, 1 + (underWay - pace.owed) / 2);
  }

  /** With too few slots to keep one free, moving lanes come first for a third of the time that the other lane held one. */
  #rest(now: number, { beganAt }: LaneClaim): void {
    if (this.#maxStalled === this.#deps.total) this.#restsUntil = now + (now - beganAt) / 3;
  }
}

/** A slow lane gets as many slots as one whose attempts take even longer. */
function fewestUnderWay(first: Lane): Lane {
  let fewest = first;
  for (let lane = first.behind; lane; lane = lane.behind) if (lane.underWay < fewest.underWay) fewest = lane;
  return fewest;
}

/** The place behind all claims of the same urgency. */
function placeOf(claim: LaneClaim, waiting: readonly LaneClaim[]): number {
  let [from, to] = [0, waiting.length];
  const last = waiting[to - 1];
  if (!last || !isBefore(claim, last)) return to;
  while (from < to) {
    const middle = (from + to) >> 1;
    const other = waiting[middle];
    if (other && isBefore(claim, other)) to = middle;
    else from = middle + 1;
  }
  return from;
}

function isBefore({ run: a }: LaneClaim, { run: b }: LaneClaim): boolean {
  return a.priority === b.priority ? a.dueAt < b.dueAt : a.priority < b.priority;
}
