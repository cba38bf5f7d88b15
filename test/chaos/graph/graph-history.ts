import type { ReportOf } from '../checker/violations.ts';

/**
 * What a graph campaign leaves behind, and all that its checker is given. Moments are ms of one process's monotonic clock: receiver,
 * workers and observer are one process.
 */
export interface GraphHistory {
  asked: Asked[];
  deliveries: Delivery[];
  words: Word[];
  sightings: Sighting[];
  rows: FinalRow[];
  lives: WorkerLifetime[];
  /** Runs that recovery found waiting for nothing; a healthy system has none. */
  releasedByBackstop: number;
  /** Edges whose dependency has ended and was not counted. */
  uncounted: number;
  /** Answers that no such request may get. */
  refusals: string[];
  /** Instances that were not ready after the last start. */
  unready: string[];
}

/** `http`: its answer ends it; `callback`: its answer accepts it, and a call ends it; `pull`: a worker claims it. */
export type Kind = 'http' | 'callback' | 'pull';

/**
 * How receiver or worker deal with it. `plain`: at once. `flaky`: the first attempt is answered with 503. `early`: ended before the
 * answer. `together`: when another one is there, which ends then as well. `late`: the first attempt is ended after its time was up. `never`: the first attempt is not ended. `beating`: takes longer
 * than its time, and says so.
 */
export type Manner = 'plain' | 'flaky' | 'early' | 'together' | 'late' | 'never' | 'beating';
export type Fate = 'succeeded' | 'failed';

/** One run, as its client wants it. */
export interface Asked {
  /** Its key, and what its payload says. */
  ref: string;
  /** Null: no call that asked for it was answered so. */
  id: string | null;
  /** The call that asked for it: all of a call are accepted, or none. */
  call: number;
  /**
   * `unasked`: no call ever named it. `unknown`: none that did was answered, so it may be there or not. `refused`: answered that it is not.
   */
  outcome: 'unasked' | 'unknown' | 'refused' | 'accepted';
  kind: Kind;
  manner: Manner;
  /** How it ends where it is started. */
  fate: Fate;
  /** Refs. */
  dependsOn: string[];
  onDependencyFailure: 'fail' | 'run';
}

/** One arrival at the receiver, or one claim by a worker. */
export interface Delivery {
  runId: string;
  attempt: number;
  /** When it was there: the whole request, or the whole answer of the claim. */
  at: number;
  /** As source-address.ts has it; of a claim the worker. */
  sender: string;
  /** What it says of what the run depended on. */
  outcomes: DependencyOutcome[];
  /** What the receiver said and when it began to; null: nothing, or it was a claim. */
  answer: { statusCode: number; at: number; sent: boolean } | null;
  lease: Lease | null;
}

interface Lease {
  /** When the claim was asked for: what was granted ends no sooner than so long after. */
  askedAt: number;
  seconds: number;
}

export interface DependencyOutcome {
  runId: string;
  status: string;
  errorKind: string | null;
  body: string | null;
}

/** One call of /complete or /heartbeat. */
export interface Word {
  runId: string;
  attempt: number;
  say: Fate | 'alive';
  sentAt: number;
  endedAt: number;
  /** Null: it was not answered, and may have been heard. */
  statusCode: number | null;
  /** By that answer a worker had it: a sign of life is also taken between two attempts, and extends nothing then. */
  isHeld: boolean;
}

/** A run that had ended when the observer looked; noted again only if it had changed. */
export interface Sighting {
  runId: string;
  status: string;
  /** When the look was over. */
  at: number;
}

/** As the run stands in the end. */
export interface FinalRow {
  id: string;
  key: string | null;
  status: string;
  errorKind: string | null;
  body: string | null;
  attempts: number;
  /** When its end was written, by the moments of the campaign; null: it has not ended. */
  endedAt: number | null;
}

/** One process of an instance. */
export interface WorkerLifetime {
  sender: string;
  from: number;
  /** Infinity: to the end. */
  to: number;
  /** The others declared it dead while it lived: it went on under another id. */
  replaced: boolean;
}

/** Kinds of broken promises of a graph campaign; each must be 0 after any. */
export const GRAPH_VIOLATIONS = {
  stuck: 'never reached a terminal status',
  lost: 'accepted, and not there',
  phantom: 'a run or a delivery that was not asked for, or two runs for one key',
  endedTwice: 'seen in one terminal status, and later in another',
  tooEarly: 'started before all that it depends on had ended',
  startedInVain: 'started, or not failed for it, although what it needs did not succeed',
  wrongEnd: 'ended otherwise than its receiver or worker said',
  wrongOutcome: 'told another outcome of what it depends on than there is',
  twoWorkers: 'with two workers at once, under leases that both held',
  leaseBroken: 'a worker refused while its lease held',
  staleWord: 'the word of an attempt taken although a later one had begun, or of two attempts',
  afterItsEnd: 'started again after its end was acknowledged',
  sameAttemptTwice: 'one attempt that arrived twice',
  unexplainedRepeat: 'sent again although it was acknowledged and nothing happened to its sender',
  backstop: 'released by recovery, and not by the end of what it waited for',
  uncounted: 'a dependency that has ended and was not counted',
  refusal: 'a request that should be taken was refused',
  liveness: 'an instance that does not work after the last start',
} as const;
export type GraphViolation = keyof typeof GRAPH_VIOLATIONS;

export type GraphReport = ReportOf<GraphViolation>;
