import type { RunStatus } from './run.ts';
import type { AttemptEntry, AttemptError } from './attempts/outcome.ts';
import type { Instant } from '../instant.ts';
import type { RunEnd } from '../run-end.ts';
import { beginByOf } from './bounds.ts';
import { type OfSchedule, UNGUARDED } from './new-run.ts';
import type { RunRecord } from './run-record.ts';

const OPEN = ['waiting', 'pending', 'running'] as const;
const RECORDED = [null] as const;

/**
 * Every way in which the status of a run changes: from any of the first to any of the second, by this function. Null: the run is being
 * recorded. Functions of this folder make a record, which `saveLockedRuns` or `recordRuns` writes; those of `store/` are statements that
 * write the status themselves, and name their row by `stepTo`. docs/concepts.md says when each step is made.
 */
export const STATUS_STEPS = [
  [RECORDED, ['pending', 'waiting', 'skipped'], 'newRun'],
  [RECORDED, ['pending', 'waiting', 'skipped'], 'recordIntentsIfLocked'],
  [RECORDED, ['pending', 'waiting'], 'recordAfterRuns'],
  [['waiting'], ['pending'], 'releaseRun'],
  [['waiting'], ['pending'], 'countDependencies'],
  [['waiting'], ['skipped', 'failed'], 'endRun'],
  [['waiting', 'pending'], ['skipped', 'failed', 'unknown'], 'expireWaiting'],
  [OPEN, ['cancelled', 'abandoned'], 'endRun'],
  [['pending'], ['running', 'succeeded', 'failed', 'unknown'], 'settleAttempt'],
  [['pending'], ['succeeded'], 'settlePlainIfClaimed'],
  [['pending'], ['running'], 'claimPullRuns'],
  [['pending'], ['unknown', 'abandoned'], 'takeOverRun'],
  [['pending', 'waiting'], ['unknown'], 'resumeRun'],
  [['running'], ['pending', 'failed', 'unknown'], 'expireRun'],
  [['pending'], ['failed'], 'expireRun'],
  [['pending'], ['running', 'succeeded', 'failed'], 'applyReport'],
  [['running'], ['succeeded', 'failed'], 'applyReport'],
  [['failed'], ['succeeded'], 'applyReport'],
  [['running'], ['pending'], 'takeBackIfStillLeased'],
  [['pending', 'running', 'unknown'], ['succeeded', 'failed'], 'endAsReported'],
  [['failed', 'unknown', 'abandoned', 'skipped', 'cancelled'], ['pending', 'waiting'], 'reopenRun'],
] as const satisfies [(RunStatus | null)[] | typeof OPEN | typeof RECORDED, RunStatus[], string][];

type StepsOf<Row> = Row extends readonly [readonly (infer From)[], readonly (infer To)[], infer By]
  ? [from: From, to: To, by: By]
  : never;

/** One change of a row, by the function of that row. */
export type StatusStep = StepsOf<(typeof STATUS_STEPS)[number]>;

const ARROWS = new Set(
  STATUS_STEPS.flatMap(([froms, tos]) => froms.flatMap((from) => tos.map((to) => arrow(from, to)))),
);

/** Whether a run may have this status after that one; null: it is being recorded. A record may also be written with the status it has. */
export function mayBecome(from: RunStatus | null, to: RunStatus): boolean {
  return from === to || ARROWS.has(arrow(from, to));
}

function arrow(from: RunStatus | null, to: RunStatus): string {
  return `${from ?? ''} ${to}`;
}

/**
 * Steps of a run: pure functions from one record to the next. Each takes a record whose row is locked. The caller has
 * checked that the step is legal, and writes the result in the same transaction.
 */

/** The run ends without a further attempt: skipped, cancelled, abandoned, or failed before it began. */
export function endRun(
  run: RunRecord,
  end: { status: RunEnd; reason?: string | null; error?: AttemptError | null },
  now: Instant,
): RunRecord {
  const { status, reason = null, error = run.error } = end;
  return { ...run, status, reason, error, finishedAt: now, expiresAt: null, updatedAt: now };
}

/** A waiting run no longer waits: it becomes pending. */
export function releaseRun(run: RunRecord, now: Instant): RunRecord {
  return { ...run, status: 'pending', updatedAt: now };
}

/**
 * Opens an ended run again under its schedule's present definition (null: it is a one-off run, and keeps its own). Its past stays
 * (attempts, found lost, the attempt log); from now on, reports about its earlier attempts come too late.
 */
export function reopenRun(
  run: RunRecord,
  current: OfSchedule | null,
  { status, now }: { status: Extract<RunStatus, 'pending' | 'waiting'>; now: Instant },
): RunRecord {
  return {
    ...run,
    status,
    dueAt: now,
    updatedAt: now,
    ...(current ?? UNGUARDED),
    beginBy: beginByOf(current ?? run, now),
    admittedAt: null,
    retriedAfter: run.attempts,
    ...NOTHING_SENT,
    ...NO_RESULT,
    failures: 0,
    recoveries: 0,
    recoveredAt: null,
    firstClaimedAt: null,
    leaseSeconds: null,
    workerId: null,
    progress: null,
    reason: null,
    finishedAt: null,
  };
}

/** No attempt is under way, and none is in doubt. */
const NOTHING_SENT = {
  claimedBy: null,
  claimedAt: null,
  handoffStartedAt: null,
  handedOffAt: null,
  inDoubtUntil: null,
  attemptInDoubt: null,
  lookups: 0,
  expiresAt: null,
} as const;

const NO_RESULT = { error: null, resultStatusCode: null, resultBody: null, executionId: null } as const;

/** The end that a worker or a target reports with /complete. */
export interface ReportedEnd {
  status: 'succeeded' | 'failed';
  error: AttemptError | null;
  /** Null: the target's answer stays. */
  result: string | null;
}

/**
 * The report of a run's end proves that it was handed off, at the latest now. The outcome of the attempt itself may
 * still be on its way, so its start is taken from the claim if nothing better is known.
 */
export function endAsReported(run: RunRecord, { status, error, result }: ReportedEnd, now: Instant): RunRecord {
  const wasRunning = run.status === 'running';
  // Of an observed run this may be the first that anybody says of it.
  const startedAt = run.handoffStartedAt ?? run.claimedAt ?? (run.observed ? now : null);
  return {
    ...run,
    attempts: run.observed ? Math.max(1, run.attempts) : run.attempts,
    status,
    reason: null,
    error,
    resultStatusCode: wasRunning && result === null ? run.resultStatusCode : null,
    resultBody: result ?? (wasRunning ? run.resultBody : null),
    progress: status === 'succeeded' && run.progress !== null ? 1 : run.progress,
    // An instance's reading of the database's time may be a little ahead.
    finishedAt: Math.max(now, run.handedOffAt ?? now),
    handoffStartedAt: startedAt,
    handedOffAt: run.handedOffAt ?? now,
    expiresAt: null,
    inDoubtUntil: null,
    latenessMs: run.latenessMs ?? (startedAt === null ? null : startedAt - run.dueAt),
    updatedAt: now,
  };
}

/** The entry of an attempt that ends now, of which only its run's row tells. */
export function entryOf(
  { attempts, claimedBy, claimedAt, handoffStartedAt, recoveries }: RunRecord,
  end: Pick<AttemptEntry, 'outcome' | 'statusCode' | 'error'>,
  now: Instant,
): AttemptEntry {
  return {
    attempt: attempts,
    instanceId: claimedBy ?? NO_INSTANCE,
    startedAt: handoffStartedAt ?? claimedAt ?? now,
    finishedAt: now,
    ...end,
    recovery: recoveries > 0,
    lookup: null,
  };
}

/** The log names an instance; a row that another program wrote may have none. */
const NO_INSTANCE = '00000000-0000-0000-0000-000000000000';

/**
 * The log with one more entry. If there is an entry of the same attempt, it takes over the new outcome if `replaces`
 * allows it, and stays otherwise.
 */
export function withAttempt(
  log: readonly AttemptEntry[] | null,
  entry: AttemptEntry,
  replaces: (logged: AttemptEntry) => boolean = () => false,
): AttemptEntry[] {
  const before = log ?? [];
  const logged = before.find(({ attempt }) => attempt === entry.attempt);
  if (!logged) return [...before, entry].sort((a, b) => a.attempt - b.attempt);
  if (!replaces(logged)) return [...before];
  const { finishedAt, outcome, statusCode, error } = entry;
  return before.map((one) => (one === logged ? { ...one, finishedAt, outcome, statusCode, error } : one));
}
