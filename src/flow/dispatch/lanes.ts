/**
 * Guarantees: no more attempts are under way than the instance and each lane may have (lane-shares.ts). Lanes take turns at free slots:
 *   first those that move, then slow ones, then those that answer nothing. Nothing starts while the lease does not hold.
 * Transaction: none; this is memory.
 * If the process dies here: what waited is still claimed by it, and pending.
 */
import type { Clock } from '../../runtime/clock.ts';
import { Line } from '../../runtime/loop/line.ts';
import type { LaneClaim, Lane, LaneBook } from './lane.ts';
import { type AttemptEnd, HANGS_MS } from './lane-pace.ts';
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
const STANDS_BACK_MS = 1_000;
/** How often attempts of slow lanes are looked at. */
const LOOK_AT_SLOW_MS = HANGS_MS / 4;

/** Claims that wait for slots. */
export class Lanes {
  readonly #deps: LanesDeps;
  readonly #shares: LaneShares;
  /** Lanes with something to send and room for it: those that move or may come to, slow ones, and those that answer nothing. */
  readonly #forward = new Line<Lane>();
  readonly #slow = new Line<Lane>();
  readonly #back = new Line<Lane>();
  /** Attempts under way that do not hang, the oldest first; and those that have taken long, in lanes from which no more is expected. */
  readonly #young = new Line<LaneClaim>();
  readonly #patient = new Set<LaneClaim>();
  #lookedAtSlow = -Infinity;
  /** Monotonic: until then, every slot is offered to moving lanes first. */
  #restsUntil = -Infinity;
  #paused = false;

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
    this.#patient.delete(claim);
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
      this.#patient.add(claim);
      this.#lookAt(claim, now);
    }
    if (now - this.#lookedAtSlow < LOOK_AT_SLOW_MS) return;
    this.#lookedAtSlow = now;
    for (const claim of this.#patient) this.#lookAt(claim, now);
  }

  #lookAt(claim: LaneClaim, now: number): void {
    const { lane, beganAt } = claim;
    if (now - beganAt <= lane.pace.patienceMs) return;
    this.#patient.delete(claim);
    lane.pace.hangs(claim);
    this.#deps.book.recount(lane);
    this.#place(lane);
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
    const line = !mayCome ? null : pace.isStalled ? this.#back : pace.isSlow ? this.#slow : this.#forward;
    if (line === lane.line) return;
    lane.line?.remove(lane);
    line?.push(lane);
  }

  /** The lane whose turn it is at a free slot; null: the slot stays free. */
  #next(now: number): Lane | null {
    const { book, total } = this.#deps;
    const forward = this.#nextForward();
    const [slow, silent] = [this.#fewest(this.#slow), this.#fewest(this.#back)];
    const back = slow && silent && silent.since + STANDS_BACK_MS <= slow.since ? silent : (slow ?? silent);
    if (!forward || !back) return forward ?? back;
    const share = Math.max(1, total / book.all.lanes);
    const isDue = now >= this.#restsUntil && back.since + STANDS_BACK_MS <= forward.since;
    return isDue && back.underWay < share ? back : forward;
  }

  #nextForward(): Lane | null {
    for (let lane = this.#forward.first; lane; lane = lane.behind)
      if (this.#shares.mayBegin(lane)) return lane;
    return null;
  }

  /** A slow lane gets as many slots as one whose attempts take even longer. */
  #fewest({ first }: Line<Lane>): Lane | null {
    if (!first) return null;
    let fewest = first;
    for (let lane = first.behind; lane && fewest.underWay > 0; lane = lane.behind)
      if (lane.underWay < fewest.underWay) fewest = lane;
    return this.#shares.mayBegin(fewest) ? fewest : null;
  }

  /** With too few slots to keep one free, moving lanes come first for a third of the time that the other lane held one. */
  #rest(now: number, { beganAt }: LaneClaim): void {
    if (this.#shares.areTooFew) this.#restsUntil = now + (now - beganAt) / 3;
  }
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
