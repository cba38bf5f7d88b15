import type { AttemptEntry } from './attempts/outcome.ts';
import type { Instant } from '../instant.ts';
import type { Bound } from '../schedules/expect.ts';
import type { OnDependencyFailure, RunFields } from './run.ts';

/** A run as its row holds it, open or ended. transitions.ts makes the next record from it. */
export interface RunRecord extends RunFields {
  scheduleUid: string;
  scheduleVersion: number;
  /** Empty: a one-off run. */
  scheduleId: string;
  lane: string;
  priority: number;
  dueAt: Instant;
  /** Since when it has a place of its limit; null: it has none. */
  admittedAt: Instant | null;
  firstClaimedAt: Instant | null;
  recoveredAt: Instant | null;
  attemptInDoubt: number | null;
  retriedAfter: number | null;
  lookups: number;
  resultStatusCode: number | null;
  resultBody: string | null;
  ownPayload: string | null;
  overlapGuarded: boolean;
  outcomeWatched: boolean;
  /** How long it may wait, and until when it may be claimed; null: for ever. */
  expiresAfterSeconds: number | null;
  /** Bounds of `expect` that did not hold; null: none. */
  unmet: Bound[] | null;
  /** Why its result was none that is expected; null: it was, or nothing is. */
  unmetReason: string | null;
  /** The bound that comes next, and when it passes; null: none is left. Of an ended run both are null, and so is the next field. */
  nextBound: Bound | null;
  boundAt: Instant | null;
  /** For the bound that begins with its first attempt, until that begins. */
  finishWithinSeconds: number | null;
  openDependencies: number | null;
  onDependencyFailure: OnDependencyFailure | null;
  hasDependents: boolean;
  leaseSeconds: number | null;
  attemptLog: AttemptEntry[] | null;
}

/** The right of an instance to make one attempt of a run. It guards every write after the claim. */
export interface Claim {
  runId: string;
  instanceId: string;
  /** The number of the attempt that the claim is for. */
  attempt: number;
}
