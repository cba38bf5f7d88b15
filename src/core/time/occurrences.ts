import type { Instant } from '../instant.ts';
import type { RunStatus } from '../runs/run.ts';
import type { CatchUp } from '../timing/timing.ts';
import { type Expected, byPosition } from './expected-occurrences.ts';

/** A planned run, by its occurrence; it may also stand for others that were missed. */
export interface PlannedRun {
  id: string;
  uid: string;
  scheduledFor: Instant;
  version: number;
  status: RunStatus;
  reason: string | null;
  coalesced: number;
  coalescedFrom: Instant | null;
}

/** What is known beside runs and versions, read before them. */
export interface PlanningState {
  now: Instant;
  /** No older occurrence was ever planned. */
  horizon: Instant;
  /** Null: no schedule has the id now. */
  current: {
    uid: string;
    /** The first occurrence not yet planned; null: none is to be. */
    nextOccurrenceAt: Instant | null;
    inError: boolean;
    /** It is now, unless the database's clock was ahead when the schedule was planned (`planningGoesOnAfter`). */
    goesOnAfter: Instant;
    /** Coming occurrences that a caller asked to skip. */
    skips: ReadonlySet<Instant>;
  } | null;
}

export const OCCURRENCE_STATES = ['fired', 'missed', 'skipped', 'paused', 'excluded', 'upcoming'] as const;
type OccurrenceState = (typeof OCCURRENCE_STATES)[number];

/** `clock`: it is planned already, by a clock that was ahead, and no run is made at its moment. `unknown`: no record explains it. */
type OccurrenceReason =
  'latest' | 'skip' | 'limit' | 'retention' | 'overlap' | 'request' | 'expired' | 'error' | 'clock' | 'unknown';

/** What became of one occurrence of a schedule. */
export interface Occurrence {
  uid: string;
  fireAt: Instant;
  state: OccurrenceState;
  /** For an excluded occurrence: the entry of `exclude.dates`, the weekday, or the id of the calendar. Otherwise an `OccurrenceReason`. */
  reason: string | null;
  /** Its own run, or the run that stands for it. */
  runId: string | null;
  version: number;
  /** Dates: whose fire it is, and where the fires of its day went. */
  movedFrom: string | null;
  movedTo: string | null;
}

/**
 * Every occurrence that the versions of a schedule lead one to expect, or that has a run, with what became of it; in
 * the order of (fireAt, uid). `runs` are those of the same period, `later` those after it that stand for missed ones.
 */
export function accountFor(
  expected: readonly Expected[],
  runs: readonly PlannedRun[],
  later: readonly PlannedRun[],
  planning: PlanningState,
): Occurrence[] {
  const own = new Map(runs.map((run) => [keyOf(run.uid, run.scheduledFor), run]));
  const records = [...runs, ...later].filter(({ coalesced }) => coalesced > 0).sort(inOrder);
  const explained = expected.map((one) => {
    const key = keyOf(one.uid, one.fireAt);
    const run = own.get(key);
    own.delete(key);
    const { uid, fireAt, version, movedFrom, movedTo } = one;
    return {
      uid,
      fireAt,
      version,
      movedFrom,
      movedTo,
      ...(run ? ofRun(run) : withoutRun(one, records, planning)),
    };
  });
  // A backfill under another definition, or a zone whose rules have changed since: it fired, whatever one would expect now.
  const unexplained = [...own.values()].map((run) => ({
    uid: run.uid,
    fireAt: run.scheduledFor,
    version: run.version,
    ...NOT_MOVED,
    ...ofRun(run),
  }));
  return [...explained, ...unexplained].sort(byPosition);
}

const NOT_MOVED = { movedFrom: null, movedTo: null };

type Fate = Pick<Occurrence, 'state' | 'reason' | 'runId'>;

function ofRun({ id: runId, status, reason }: PlannedRun): Fate {
  if (status !== 'skipped') return { state: 'fired', reason: null, runId };
  if (reason === 'overlap' || reason === 'request' || reason === 'expired') return { state: 'skipped', reason, runId };
  return { state: 'missed', reason: reason === 'limit' ? 'limit' : 'skip', runId };
}

function withoutRun(expected: Expected, records: readonly PlannedRun[], planning: PlanningState): Fate {
  if (expected.excludedBy !== null) return { state: 'excluded', reason: expected.excludedBy, runId: null };
  if (!expected.enabled) return { state: 'paused', reason: null, runId: null };
  const { dueAt, fireAt } = expected;
  const isPassedOver = isPlannedAhead(expected, planning);
  const isUnplanned = isAtCursor(expected, planning) && !isPassedOver;
  const inError = isUnplanned && planning.current?.inError === true;
  const upcoming: Fate = { state: 'upcoming', reason: inError ? 'error' : null, runId: null };
  // During maintenance nothing is planned; an edit that leaves the fire times leaves planning to the tick after it.
  if ((dueAt > planning.now && !isPassedOver) || isUnplanned) {
    const isSkipped = isUnplanned && planning.current?.skips.has(fireAt);
    return isSkipped ? { state: 'skipped', reason: 'request', runId: null } : upcoming;
  }
  const record = recordFor(expected, records);
  if (record) return { state: 'missed', reason: reasonOf(record, expected.catchUp), runId: record.id };
  if (inError) return upcoming;
  if (isPassedOver) return { state: 'missed', reason: 'clock', runId: null };
  return { state: 'missed', reason: fireAt < planning.horizon ? 'retention' : 'unknown', runId: null };
}

/** Planning is past this occurrence, though its moment is still to come. */
function isPlannedAhead({ uid, fireAt }: Expected, { now, current }: PlanningState): boolean {
  return current?.uid === uid && fireAt > now && fireAt <= current.goesOnAfter;
}

/** Planning has not reached this occurrence. */
function isAtCursor({ uid, fireAt }: Expected, { current }: PlanningState): boolean {
  if (current?.uid !== uid || current.nextOccurrenceAt === null) return false;
  return fireAt >= current.nextOccurrenceAt;
}

/**
 * Jitter can move an occurrence over an edit, so that it lies among those of the version before: the record of those
 * does not stand for it.
 */
function recordFor(expected: Expected, records: readonly PlannedRun[]): PlannedRun | undefined {
  const { uid, fireAt, version } = expected;
  const covering = records.filter((record) => {
    const { coalescedFrom, scheduledFor } = record;
    return record.uid === uid && coalescedFrom !== null && coalescedFrom <= fireAt && fireAt < scheduledFor;
  });
  // A run that was opened again has a later version, the one of that moment.
  return covering.find((record) => record.version === version) ?? covering.find((record) => record.version > version);
}

/** The record of a reopened run no longer says by itself why it did not fire. */
function reasonOf({ status, reason }: PlannedRun, catchUp: CatchUp): OccurrenceReason {
  if (status === 'skipped' && reason === 'missed') return 'skip';
  if (status === 'skipped' && reason === 'limit') return 'limit';
  return REASONS[catchUp];
}

const REASONS = { skip: 'skip', latest: 'latest', all: 'limit' } as const satisfies Record<CatchUp, OccurrenceReason>;

function inOrder(a: PlannedRun, b: PlannedRun): number {
  return a.scheduledFor - b.scheduledFor;
}

function keyOf(uid: string, at: Instant): string {
  return `${uid} ${at}`;
}
