import type { Clock } from '../../runtime/clock.ts';
import { Line } from '../../runtime/loop/line.ts';
import type { LaneClaim, Lane, LaneBook } from './lane.ts';
import { type AttemptEnd, HANGS_AFTER_MS } from './lane-pace.ts';
import { LaneShares } from './lane-shares.ts';

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

/** If others wait too, the turn of a lane comes this much later than that of a quicker kind. So it is still tried from time to time. */
const SLOWER_LANE_DELAY_MS = 1_000;
/** How often attempts of slow lanes are looked at. */
const SLOW_ATTEMPTS_CHECK_MS = HANGS_AFTER_MS / 4;

/**
 * Claims that wait for slots. No more attempts are under way than the instance and each lane may have (lane-shares.ts). Lanes take turns
 * at free slots: first those that move, then slow ones, then those that answer nothing.
 */
export class Lanes {
  readonly #deps: LanesDeps;
  readonly #shares: LaneShares;
  /** Lanes with something to send and room for it: moving and new ones, slow ones, and stalled ones. */
  readonly #quick = new Line<Lane>();
  readonly #slow = new Line<Lane>();
  readonly #stalled = new Line<Lane>();
  /** Attempts under way that do not hang, the oldest first; and those that have taken long, in lanes from which no more is expected. */
  readonly #recent = new Line<LaneClaim>();
  readonly #long = new Set<LaneClaim>();
  #checkedLongAt = -Infinity;
  /** Monotonic: until then, every slot is offered to moving lanes first. */
  #quickFirstUntil = -Infinity;
  #stopped = false;

  constructor(deps: LanesDeps) {
    this.#deps = deps;
    this.#shares = new LaneShares(deps.book, deps.total);
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
    this.#long.delete(claim);
    lane.pace.ended(claim, end, durationMs);
    book.addUnderWay(lane, -1);
    if (!lane.pace.isMoving) this.#putQuickFirst(clock.monotonic(), claim);
    this.#place(lane);
    this.start();
  }

  /** Starts what may be started by now: `mayStart` has changed its mind, say, or a lane has been found to stand still. */
  start(): void {
    const { book, clock, total, mayStart } = this.#deps;
    const now = clock.monotonic();
    this.#findHanging(now);
    if (book.all.waiting === 0 || this.#stopped) return;
    while (book.all.slots < total) {
      const lane = this.#next(now);
      if (!lane || !mayStart()) return;
      this.#startFrom(lane, now);
    }
  }

  /** From now on, nothing more starts. */
  stop(): void {
    this.#stopped = true;
  }

  /** Removes the waiting claims that the filter picks. */
  removeWaiting(filter: (claim: LaneClaim) => boolean): LaneClaim[] {
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
  #findHanging(now: number): void {
    const recent = this.#recent;
    for (let claim = recent.first; claim && now - claim.beganAt > HANGS_AFTER_MS; claim = recent.first) {
      recent.remove(claim);
      this.#long.add(claim);
      this.#checkHanging(claim, now);
    }
    if (now - this.#checkedLongAt < SLOW_ATTEMPTS_CHECK_MS) return;
    this.#checkedLongAt = now;
    for (const claim of this.#long) this.#checkHanging(claim, now);
  }

  #checkHanging(claim: LaneClaim, now: number): void {
    const { lane, beganAt } = claim;
    if (now - beganAt <= lane.pace.hangsAfterMs) return;
    this.#long.delete(claim);
    lane.pace.hangs(claim);
    this.#deps.book.recount(lane);
    this.#place(lane);
  }

  #enqueue(claim: LaneClaim): void {
    const { book, clock } = this.#deps;
    const { lane } = claim;
    if (lane.waiting.length === 0) lane.lastTurnAt = clock.monotonic();
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
    lane.lastTurnAt = now;
    claim.state = 'sent';
    claim.beganAt = now;
    this.#recent.push(claim);
    lane.pace.began(claim);
    book.addUnderWay(lane, 1);
    // At the end of the line.
    lane.line?.remove(lane);
    this.#place(lane);
    send(claim);
  }

  /** Puts a lane into the line where it belongs by now. */
  #place(lane: Lane): void {
    const line = this.#lineOf(lane);
    if (line === lane.line) return;
    lane.line?.remove(lane);
    line?.push(lane);
  }

  #lineOf({ waiting, underWay, pace }: Lane): Line<Lane> | null {
    if (waiting.length === 0 || underWay >= this.#deps.perLane) return null;
    if (pace.isStalled) return this.#stalled;
    return pace.isSlow ? this.#slow : this.#quick;
  }

  /** The lane whose turn it is at a free slot; null: the slot stays free. */
  #next(now: number): Lane | null {
    const { book, total } = this.#deps;
    const quick = this.#firstQuick();
    const slow = this.#leastBusy(this.#slow);
    const stalled = this.#leastBusy(this.#stalled);
    const slower = slow && stalled && hasWaitedLonger(slow, stalled) ? stalled : (slow ?? stalled);
    if (!quick || !slower) return quick ?? slower;
    const share = Math.max(1, total / book.all.lanes);
    const isDue = now >= this.#quickFirstUntil && hasWaitedLonger(quick, slower);
    return isDue && slower.underWay < share ? slower : quick;
  }

  #firstQuick(): Lane | null {
    for (let lane = this.#quick.first; lane; lane = lane.behind) if (this.#shares.mayBegin(lane)) return lane;
    return null;
  }

  /** A slow lane gets as many slots as one whose attempts take even longer. */
  #leastBusy({ first }: Line<Lane>): Lane | null {
    if (!first) return null;
    let fewest = first;
    for (let lane = first.behind; lane && fewest.underWay > 0; lane = lane.behind)
      if (lane.underWay < fewest.underWay) fewest = lane;
    return this.#shares.mayBegin(fewest) ? fewest : null;
  }

  /** With too few slots to keep one free, moving lanes come first for a third of the time that the other lane had one. */
  #putQuickFirst(now: number, { beganAt }: LaneClaim): void {
    if (this.#shares.areTooFew) this.#quickFirstUntil = now + (now - beganAt) / 3;
  }
}

/** The slower lane has waited so much longer for its turn than the quicker one. */
function hasWaitedLonger(quicker: Lane, slower: Lane): boolean {
  return slower.lastTurnAt + SLOWER_LANE_DELAY_MS <= quicker.lastTurnAt;
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
