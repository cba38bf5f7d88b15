import { type ScopeShares, NO_SHARES } from '../access/scope.ts';
import { laneInScope } from './run-lane.ts';
import type { Instant } from '../instant.ts';
import { type Definition, type Schedule, OBSERVED_LANE, PRIORITY_RANK } from '../schedules/schedule.ts';
import { isOutcomeWatched } from '../schedules/outcome-watch.ts';
import { NO_BOUNDS, beginByOf } from './bounds.ts';
import type { RunRecord } from './run-record.ts';

/** What a run of a schedule takes from it, as the schedule stands then. */
export type OfSchedule = Pick<
  RunRecord,
  | 'scheduleUid'
  | 'scheduleVersion'
  | 'scheduleId'
  | 'lane'
  | 'priority'
  | 'limitId'
  | 'overlapGuarded'
  | 'outcomeWatched'
  | 'expiresAfterSeconds'
>;

/** The schedule, or a version of it, that a run is of. */
interface ScheduleOfRuns extends Pick<Schedule, 'uid' | 'id' | 'version' | 'lane'> {
  definition: Pick<
    Definition,
    'priority' | 'limit' | 'overlap' | 'expiresAfterSeconds' | 'pauseAfterFailures' | 'successWithinSeconds'
  >;
}

/** `recordIntentsIfLocked` and `recordAfterRuns` take the same from its row; a test compares them. */
export function runOfSchedule(
  { uid, id, version, lane, definition }: ScheduleOfRuns,
  scopeShares: ScopeShares = NO_SHARES,
): OfSchedule {
  return {
    scheduleUid: uid,
    scheduleVersion: version,
    scheduleId: id,
    lane: laneInScope(scopeShares, lane, id),
    priority: PRIORITY_RANK[definition.priority],
    limitId: definition.limit,
    overlapGuarded: definition.overlap !== 'allow',
    outcomeWatched: isOutcomeWatched(definition),
    expiresAfterSeconds: definition.expiresAfterSeconds,
  };
}

/** What an observed run has instead of what it would take from its schedule: `AS_OBSERVED` says the same in SQL. */
export function asObserved(dueAt: Instant, reportSeconds: number) {
  return {
    observed: true,
    lane: OBSERVED_LANE,
    ...{ limitId: null, overlapGuarded: false, expiresAfterSeconds: null },
    leaseSeconds: reportSeconds,
    expiresAt: dueAt + reportSeconds * 1000,
  };
}

/** A run that is skipped never started: no other has to wait for it, and it is no outcome. */
export const UNGUARDED = { overlapGuarded: false, outcomeWatched: false } as const;

/** The fields of a run that are given when it is recorded; all others begin empty. */
type NewRun = Pick<
  RunRecord,
  | 'id'
  | 'scheduledFor'
  | 'scheduleUid'
  | 'scheduleVersion'
  | 'scheduleId'
  | 'trigger'
  | 'status'
  | 'lane'
  | 'priority'
  | 'dueAt'
> &
  Partial<RunRecord>;

/** A run as it is first recorded, at this moment of the database's clock. */
export function newRun(given: NewRun, now: Instant): RunRecord {
  const run = { ...EMPTY, createdAt: now, updatedAt: now, ...given };
  return { ...run, beginBy: given.beginBy ?? beginByOf(run, run.dueAt) };
}

const EMPTY = {
  limitId: null,
  admittedAt: null,
  attempts: 0,
  failures: 0,
  recoveries: 0,
  coalesced: 0,
  coalescedFrom: null,
  claimedBy: null,
  claimedAt: null,
  firstClaimedAt: null,
  lostAt: null,
  recoveredAt: null,
  inDoubtUntil: null,
  attemptInDoubt: null,
  retriedAfter: null,
  lookups: 0,
  handoffStartedAt: null,
  handedOffAt: null,
  latenessMs: null,
  executionId: null,
  resultStatusCode: null,
  resultBody: null,
  error: null,
  ownPayload: null,
  key: null,
  overlapGuarded: false,
  outcomeWatched: false,
  expiresAfterSeconds: null,
  beginBy: null,
  parentId: null,
  notifierId: null,
  observed: false,
  unmet: null,
  unmetReason: null,
  ...NO_BOUNDS,
  openDependencies: null,
  onDependencyFailure: null,
  hasDependents: false,
  expiresAt: null,
  leaseSeconds: null,
  workerId: null,
  progress: null,
  attemptLog: null,
  reason: null,
  finishedAt: null,
} satisfies Partial<RunRecord>;
