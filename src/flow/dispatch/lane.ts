import { LineMember } from '../../runtime/loop/line.ts';
import type { ClaimedRun } from '../../store/runs/claims/claimed-run.ts';
import { LanePace, type PacedAttempt } from './lane-pace.ts';
import type { SendableHandoff } from '../handoff/handoff-definitions.ts';

/**
 * The states of a claim:
 *
 *   awaitsEarlier ──► awaitsDefinition ──► awaitsSlot ──► sent ──► settling ──► gone
 *
 * A claim that is not sent may be given up. It is `returning` while the statement that gives it up is under way.
 */
export type ClaimState =
  'awaitsEarlier' | 'awaitsDefinition' | 'awaitsSlot' | 'returning' | 'sent' | 'settling' | 'gone';

/** One claim of this process. */
export class LaneClaim extends LineMember<LaneClaim> implements PacedAttempt {
  run: ClaimedRun;
  readonly lane: Lane;
  state: ClaimState = 'awaitsDefinition';
  handoff: SendableHandoff | null = null;
  /** Its definition is being read. */
  isLoadingDefinition = false;
  /** The next claim of the same run. */
  later: LaneClaim | null = null;

  /** When its attempt began (monotonic), and what the pace notes about the attempt. */
  beganAt = 0;
  answersBefore = 0;
  hangs = false;

  constructor(run: ClaimedRun, lane: Lane) {
    super();
    this.run = run;
    this.lane = lane;
  }
}

/** A target's origin: what it has shown, and its claims and slots. */
export class Lane extends LineMember<Lane> {
  readonly name: string;
  readonly pace = new LanePace();
  /** Claims that this process has of it, or has reserved. */
  claims = 0;
  underWay = 0;
  /** Claims that wait for a slot, the next one first. */
  readonly waiting: LaneClaim[] = [];
  /** Monotonic: its last turn, or when it began to wait for one. */
  lastTurnAt = 0;

  /** What of it is in a sum of lanes that do not move, and in which. */
  readonly counted = nothing();
  countedIn: LaneTotals | null = null;

  constructor(name: string) {
    super();
    this.name = name;
  }
}

/** What some lanes have together: slots are attempts under way, lanes those that have claims. */
interface LaneTotals {
  lanes: number;
  claims: number;
  waiting: number;
  slots: number;
}

function nothing(): LaneTotals {
  return { lanes: 0, claims: 0, waiting: 0, slots: 0 };
}

const MAX_LANES_KEPT = 10_000;

/** All lanes that this process has seen lately, and what they have: the sums equal what their lanes have. */
export class LaneBook {
  readonly #lanes = new Map<string, Lane>();
  readonly all = nothing();
  /** What lanes have that answer, but slowly. */
  readonly slow = nothing();
  /** What lanes have that answer nothing, or have not answered yet; with the slots that moving lanes have shown no answer for. */
  readonly silent = nothing();

  of(name: string): Lane {
    const known = this.#lanes.get(name);
    if (known) return known;
    if (this.#lanes.size >= MAX_LANES_KEPT) this.#forgetIdle();
    const lane = new Lane(name);
    this.#lanes.set(name, lane);
    return lane;
  }

  lanes(): IterableIterator<Lane> {
    return this.#lanes.values();
  }

  addClaims(lane: Lane, count: number): void {
    const before = lane.claims;
    lane.claims += count;
    this.all.claims += count;
    this.all.lanes += Number(lane.claims > 0) - Number(before > 0);
    this.recount(lane);
  }

  addWaiting(lane: Lane, count: number): void {
    this.all.waiting += count;
    this.recount(lane);
  }

  addUnderWay(lane: Lane, count: number): void {
    lane.underWay += count;
    this.all.slots += count;
    this.recount(lane);
  }

  /** To be called after every change of what a lane has claimed or has shown. */
  recount(lane: Lane): void {
    const { pace, counted } = lane;
    const sum = pace.isSlow ? this.slow : this.silent;
    if (lane.countedIn !== sum) {
      if (lane.countedIn) change(lane.countedIn, counted, nothing());
      lane.countedIn = sum;
    }
    const { isMoving } = pace;
    now.slots = isMoving ? pace.unansweredSlots : lane.underWay;
    now.claims = isMoving ? 0 : lane.claims;
    now.waiting = isMoving ? 0 : lane.waiting.length;
    now.lanes = now.claims > 0 ? 1 : 0;
    change(sum, counted, now);
  }

  #forgetIdle(): void {
    for (const [name, lane] of this.#lanes) if (lane.claims === 0) this.#lanes.delete(name);
  }
}

/** Used anew by each recount, which happens several times for every run. */
const now = nothing();

function change(sum: LaneTotals, before: LaneTotals, after: LaneTotals): void {
  for (const key of ['lanes', 'claims', 'waiting', 'slots'] as const) {
    sum[key] += after[key] - before[key];
    before[key] = after[key];
  }
}
