import { type LineMember, Line } from '../../runtime/loop/line.ts';
import type { ClaimedRun } from '../../store/runs/claims/claimed-run.ts';
import {
  NO_SHARES,
  REST,
  type ScopeShare,
  type ScopeShares,
  prefixOfLane,
} from '../../core/access/scope-shares.ts';
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
export class LaneClaim implements LineMember<LaneClaim>, PacedAttempt {
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
  line: Line<LaneClaim> | null = null;
  before: LaneClaim | null = null;
  behind: LaneClaim | null = null;

  constructor(run: ClaimedRun, lane: Lane) {
    this.run = run;
    this.lane = lane;
  }
}

/** A target's origin: what it has shown, and its claims and slots. */
export class Lane implements LineMember<Lane> {
  readonly name: string;
  /** Whose runs these are. */
  readonly scope: LaneScope;
  readonly pace = new LanePace();
  /** Claims that this process has of it, or has reserved. */
  claims = 0;
  underWay = 0;
  /** Claims that wait for a slot, the next one first. */
  readonly waiting: LaneClaim[] = [];
  /** Monotonic: its last turn, or when it began to wait for one. */
  lastTurnAt = 0;

  line: Line<Lane> | null = null;
  before: Lane | null = null;
  behind: Lane | null = null;

  /** What of it is in a sum of lanes that do not move, and in which. */
  readonly counted = nothing();
  countedIn: LaneTotals | null = null;

  constructor(name: string, scope: LaneScope) {
    this.name = name;
    this.scope = scope;
  }
}

/** The lanes whose runs have one scope (FIRELOCK_SCOPES), and what these have together. */
export class LaneScope {
  /** Empty: runs whose names begin with none of the prefixes. */
  readonly prefix: string;
  readonly weight: number;
  claims = 0;
  waiting = 0;
  slots = 0;
  /** Of these, what is in sums of lanes that do not move. */
  claimsNotMoving = 0;
  slotsNotMoving = 0;
  /** Monotonic: its last turn, or when it began to wait for one. */
  lastTurnAt = 0;
  /** Lanes with something to send and room for it: moving and new ones, slow ones, and stalled ones. */
  readonly quick = new Line<Lane>();
  readonly slow = new Line<Lane>();
  readonly stalled = new Line<Lane>();

  constructor({ prefix, weight }: Pick<ScopeShare, 'prefix' | 'weight'>) {
    this.prefix = prefix;
    this.weight = weight;
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
  /** All scopes that share this instance's slots; one alone where nothing is shared. */
  readonly scopes: readonly LaneScope[];
  readonly #scopesByPrefix: ReadonlyMap<string, LaneScope>;

  constructor(shares: ScopeShares = NO_SHARES) {
    this.scopes = [...shares, REST].map((share) => new LaneScope(share));
    this.#scopesByPrefix = new Map(this.scopes.map((scope) => [scope.prefix, scope]));
  }

  of(name: string): Lane {
    const known = this.#lanes.get(name);
    if (known) return known;
    if (this.#lanes.size >= MAX_LANES_KEPT) this.#forgetIdle();
    const lane = new Lane(name, this.scopeOf(name));
    this.#lanes.set(name, lane);
    return lane;
  }

  /** Of a lane by its name. A scope that FIRELOCK_SCOPES names no longer, or not here, belongs to the rest. */
  scopeOf(lane: string): LaneScope {
    const scope = this.#scopesByPrefix.get(prefixOfLane(lane)) ?? this.#scopesByPrefix.get(REST.prefix);
    if (!scope) throw new Error('the rest is always there');
    return scope;
  }

  lanes(): IterableIterator<Lane> {
    return this.#lanes.values();
  }

  addClaims(lane: Lane, count: number): void {
    const before = lane.claims;
    lane.claims += count;
    lane.scope.claims += count;
    this.all.claims += count;
    this.all.lanes += Number(lane.claims > 0) - Number(before > 0);
    this.recount(lane);
  }

  addWaiting(lane: Lane, count: number): void {
    lane.scope.waiting += count;
    this.all.waiting += count;
    this.recount(lane);
  }

  addUnderWay(lane: Lane, count: number): void {
    lane.underWay += count;
    lane.scope.slots += count;
    this.all.slots += count;
    this.recount(lane);
  }

  /** To be called after every change of what a lane has claimed or has shown. */
  recount(lane: Lane): void {
    const { pace, counted, scope } = lane;
    scope.slotsNotMoving -= counted.slots;
    scope.claimsNotMoving -= counted.claims;
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
    scope.slotsNotMoving += now.slots;
    scope.claimsNotMoving += now.claims;
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
