/**
 * Guarantees: of the schedules that match when it begins, each is paused or resumed as if it had been named; or it is counted as remaining.
 * Transaction: one for each batch, as of any edit. It waits for no row that another transaction has locked, and comes back to it.
 * If the process dies here: the batches before are done, the others are as they were; asked again, it goes on with these.
 */
import { CronError } from '../../core/cron/cron.ts';
import type { Instant } from '../../core/instant.ts';
import type { Definition, Schedule } from '../../core/schedules/schedule.ts';
import type { BatchFault } from '../../runtime/loop/batch.ts';
import { batchFaultOf, isLockedByOthers, NotNow, TryAgain } from '../../postgres/errors.ts';
import type { AuditKey, Auditor } from '../../store/audit/audit-rows.ts';
import {
  type BulkScheduleFilter,
  type MatchingSchedule,
  matchingSchedules,
} from '../../store/schedules/search/matching-schedules.ts';
import { actOnBatches } from '../runs/act-on-batches.ts';
import { type BulkOutcome, SAMPLE } from '../runs/bulk-runs.ts';
import { CannotFollow } from './check-names.ts';
import { changeFreeSchedules, type ScheduleChangeDeps } from './schedule-changes.ts';
import type { ChangedSchedule } from './schedule-writes.ts';

interface BulkScheduleRequest {
  action: 'pause' | 'resume';
  filter: BulkScheduleFilter;
  /** The reason for a pause; null: none is given. */
  reason: string | null;
  /** When a pause ends by itself, later than now; null: it does not. */
  until: Instant | null;
  dryRun: boolean;
  /** The name of the caller; null: it has none. */
  by: string | null;
}

type BulkScheduleDeps = Omit<ScheduleChangeDeps, 'note'> & { auditor?: Auditor };

/** The committed result; `entry`: of the audit, if there is one. All batches share it. */
interface Done {
  matched: number;
  changed: number;
  entry: AuditKey | null;
}

const BATCH = 200;
const SEARCH_LIMIT_MS = 15_000;

/**
 * Pauses or resumes the schedules that match, or only counts them. A schedule that is already paused, or enabled, stays
 * as it is.
 */
export async function setEnabledOfMatching(deps: BulkScheduleDeps, request: BulkScheduleRequest): Promise<BulkOutcome> {
  const { action, filter, dryRun } = request;
  const matching = await deps.database.run((db) => matchingSchedules(db, filter), SEARCH_LIMIT_MS);
  const matched = matching.length;
  const sample = matching.slice(0, SAMPLE).map(({ id }) => id);
  const toChange = matching.filter(({ enabled }) => enabled === (action === 'pause'));
  if (dryRun) return { matched, changed: 0, remaining: toChange.length, sample };
  const done: Done = { matched, changed: 0, entry: null };
  const act = (some: readonly MatchingSchedule[]) => actOnBatch(deps, request, some, done);
  const remaining = await actOnBatches(toChange, { size: BATCH, act, faultOf });
  return { matched, changed: done.changed, remaining, sample };
}

/** The change of a schedule's definition: no other place decides it. */
function asAsked(definition: Definition, { action, reason, until }: BulkScheduleRequest): Definition {
  if (definition.enabled !== (action === 'pause')) return definition;
  return action === 'pause'
    ? { ...definition, enabled: false, pauseReason: reason, pauseUntil: until }
    : { ...definition, enabled: true };
}

/** Answers the locked ones. */
async function actOnBatch(
  deps: BulkScheduleDeps,
  request: BulkScheduleRequest,
  schedules: readonly MatchingSchedule[],
  done: Done,
): Promise<MatchingSchedule[]> {
  const decide = (current: Schedule | null) => {
    if (!current) throw new TryAgain('a schedule was deleted that was locked');
    return asAsked(current.definition, request);
  };
  const of = { by: request.by, scope: request.filter.scope, decide };
  const changes = schedules.map(({ uid, id }) => ({ uid, id, ...of }));
  const { changed, locked, entry } = await changeAndNote(deps, request, changes, done);
  done.changed += countUpdated(changed);
  done.entry = entry;
  return schedules.filter(({ uid }) => locked.includes(uid));
}

async function changeAndNote(
  { auditor, ...deps }: BulkScheduleDeps,
  { action }: BulkScheduleRequest,
  changes: Parameters<typeof changeFreeSchedules>[1],
  done: Done,
) {
  let { entry } = done;
  const note: ScheduleChangeDeps['note'] = async (tx, changed) => {
    const detail = { action, matched: done.matched, changed: done.changed + countUpdated(changed) };
    const change = { action: 'schedules.bulk', subject: null, scheduleId: null, detail } as const;
    entry = (await auditor?.noteSoFar(tx, done.entry, change)) ?? null;
  };
  return { ...(await changeFreeSchedules({ ...deps, note }, changes)), entry };
}

function countUpdated(changed: readonly ChangedSchedule[]): number {
  return changed.filter(({ change }) => change === 'updated').length;
}

/** A schedule that cannot be changed as it is remains. */
function faultOf(error: unknown): BatchFault | null {
  if (error instanceof NotNow || error instanceof CronError || error instanceof CannotFollow) return 'refused';
  return isLockedByOthers(error) ? 'refused' : batchFaultOf(error);
}
