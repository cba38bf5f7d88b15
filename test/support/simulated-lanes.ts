import { LaneClaim, LaneBook } from '../../src/flow/dispatch/lane.ts';
import { Lanes } from '../../src/flow/dispatch/lanes.ts';
import { claimedRun } from './claims.ts';

/** How long a target takes to answer; null: it hangs until the attempt's time is up. */
type Target = (now: number) => number | null;

interface Sent {
  lane: string;
  at: number;
  waitedMs: number;
}

interface Simulated {
  total: number;
  perLane: number;
  timeoutMs: number;
}

/** What is recorded at once. */
const BATCH = 500;
const PRIME = 7919;

/** Lanes whose attempts take simulated time. */
export class SimulatedLanes {
  readonly book = new LaneBook();
  readonly lanes: Lanes;
  readonly sent: Sent[] = [];
  readonly #targets = new Map<string, Target>();
  readonly #timeoutMs: number;
  /** The next one last. */
  readonly #events: { at: number; happen: () => void }[] = [];
  #now = 0;

  constructor({ total, perLane, timeoutMs }: Simulated) {
    this.#timeoutMs = timeoutMs;
    this.lanes = new Lanes({
      book: this.book,
      clock: { now: () => this.#now, monotonic: () => this.#now },
      total,
      perLane,
      send: (claim) => this.#send(claim),
      mayStart: () => true,
    });
  }

  get now(): number {
    return this.#now;
  }

  target(lane: string, target: Target): void {
    this.#targets.set(lane, target);
  }

  /** So many runs of each that are due now, in no order. */
  add(names: readonly string[], count: number): void {
    const claims = names.flatMap((name) => Array.from({ length: count }, () => this.#claim(name)));
    const mixed = claims.map((_, index) => claims[(index * PRIME) % claims.length]);
    for (let from = 0; from < claims.length; from += BATCH) {
      this.lanes.add(mixed.slice(from, from + BATCH).filter((claim) => claim !== undefined));
    }
  }

  at(at: number, happen: () => void): void {
    let place = this.#events.length;
    while (place > 0 && (this.#events[place - 1]?.at ?? 0) <= at) place -= 1;
    this.#events.splice(place, 0, { at, happen });
  }

  /** At each of these moments until the end. */
  every(ms: number, end: number, happen: () => void): void {
    for (let at = this.#now + ms; at < end; at += ms) this.at(at, happen);
  }

  runUntil(end: number): void {
    for (let next = this.#events.at(-1); next && next.at <= end; next = this.#events.at(-1)) {
      this.#events.pop();
      this.#now = next.at;
      next.happen();
    }
    this.#now = end;
    this.lanes.start();
  }

  underWay(lane: string): number {
    return this.book.of(lane).underWay;
  }

  sentTo(lane: string, since = 0): Sent[] {
    return this.sent.filter((one) => one.lane === lane && one.at >= since);
  }

  #claim(name: string): LaneClaim {
    const lane = this.book.of(name);
    this.book.addClaims(lane, 1);
    return new LaneClaim(claimedRun({ lane: name, dueAt: this.#now }), lane);
  }

  #send(claim: LaneClaim): void {
    const { lane, run } = claim;
    this.sent.push({ lane: lane.name, at: this.#now, waitedMs: this.#now - run.dueAt });
    const takes = this.#targets.get(lane.name)?.(this.#now) ?? null;
    const durationMs = Math.min(takes ?? Infinity, this.#timeoutMs);
    const end = takes === null || takes > this.#timeoutMs ? 'timedOut' : 'answered';
    this.at(this.#now + durationMs, () => {
      this.book.addClaims(lane, -1);
      this.lanes.ended(claim, end, durationMs);
    });
  }
}

export function names(kind: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${kind}-${index}`);
}
