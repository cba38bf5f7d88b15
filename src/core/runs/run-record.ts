import type { AttemptEntry } from './attempts/attempt.ts';
import type { Instant } from '../instant.ts';
import type { AttemptError } from './attempts/outcome.ts';
import type { Bound } from '../schedules/expect.ts';
import type { OnDependencyFailure, RunStatus, RunTrigger } from './run.ts';

/** A run as its row holds it, open or ended. transitions.ts makes the next record from it. */
export interface RunRecord {
  id: string;
  scheduledFor: Instant;
  scheduleUid: string;
  scheduleVersion: number;
  /** Empty: a one-off run. */
  scheduleId: string;
  trigger: RunTrigger;
  status: RunStatus;
  lane: string;
  priority: number;
  dueAt: Instant;
  /** Null: it has none. */
  limitId: string | null;
  /** Since when it has a place of its limit; null: it has none. */
  admittedAt: Instant | null;
  attempts: number;
  failures: number;
  recoveries: number;
  coalesced: number;
  coalescedFrom: Instant | null;
  claimedBy: string | null;
  claimedAt: Instant | null;
  firstClaimedAt: Instant | null;
  lostAt: Instant | null;
  recoveredAt: Instant | null;
  inDoubtUntil: Instant | null;
  attemptInDoubt: number | null;
  retriedAfter: number | null;
  lookups: number;
  handoffStartedAt: Instant | null;
  handedOffAt: Instant | null;
  latenessMs: number | null;
  executionId: string | null;
  resultStatusCode: number | null;
  resultBody: string | null;
  error: AttemptError | null;
  ownPayload: string | null;
  key: string | null;
  overlapGuarded: boolean;
  outcomeWatched: boolean;
  /** How long it may wait, and until when it may be claimed; null: for ever. */
  expiresAfterSeconds: number | null;
  beginBy: Instant | null;
  /** The run whose end it follows, or the schedule that is late (parent.ts). */
  parentId: string | null;
  /** The notifier whose message it is. */
  notifierId: string | null;
  /** Bounds of `expect` that did not hold; null: none. */
  unmet: Bound[] | null;
  /** The bound that comes next, and when it passes; null: none is left. Of an ended run both are null, and so is the next field. */
  nextBound: Bound | null;
  boundAt: Instant | null;
  /** For the bound that begins with its first attempt, until that begins. */
  finishWithinSeconds: number | null;
  openDependencies: number | null;
  onDependencyFailure: OnDependencyFailure | null;
  hasDependents: boolean;
  expiresAt: Instant | null;
  leaseSeconds: number | null;
  workerId: string | null;
  progress: number | null;
  attemptLog: AttemptEntry[] | null;
  createdAt: Instant;
  updatedAt: Instant;
  /** Only for an ended run. */
  reason: string | null;
  finishedAt: Instant | null;
}

/** The right of an instance to make one attempt of a run. It guards every write after the claim. */
export interface Claim {
  runId: string;
  instanceId: string;
  /** The number of the attempt that the claim is for. */
  attempt: number;
}
