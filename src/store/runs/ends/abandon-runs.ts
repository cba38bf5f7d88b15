import { type SQL, sql } from 'drizzle-orm';
import type { Instant } from '../../../core/instant.ts';
import type { RunRecord } from '../../../core/runs/run-record.ts';
import { endRun } from '../../../core/runs/transitions.ts';
import { databaseNow, onlyColumnOf } from '../../../postgres/sql/rows.ts';
import type { Transaction } from '../../../postgres/executor.ts';
import { writeBacklogs } from '../../backlogs/backlog-rows.ts';
import { type MeetingLocks, type RunChange, lockOpenRuns, saveLockedRuns } from '../lock-and-save.ts';

interface AbandonedRuns {
  abandoned: number;
  effects: number;
}

/** Runs written by one statement: each takes a few KiB at most, but for its payload. */
const MAX_AT_ONCE = 500;

/**
 * Ends the open runs of a schedule that is deleted in this transaction; rows that others have locked are waited for. If there are more than
 * five hundred, the rest is ended in slices (`isMore`), and none of them is handed off any more.
 */
export async function abandonOpenRuns(
  tx: Transaction,
  schedule: { uid: string; id: string },
): Promise<AbandonedRuns & { isMore: boolean }> {
  const found = await onlyColumnOf<string>(tx)(sql`-- abandonOpenRuns
    ${openRunsOf(schedule.uid, MAX_AT_ONCE + 1)}`);
  const isMore = found.length > MAX_AT_ONCE;
  const { abandoned, effects } = await abandonRuns(tx, found.slice(0, MAX_AT_ONCE), 'wait');
  const { uid, id: scheduleId } = schedule;
  const backlogs = await writeBacklogs(tx, isMore ? [{ kind: 'deleted', uid, scheduleId }] : []);
  return { abandoned, effects: effects + backlogs, isMore };
}

/** Ids of open runs of a schedule. Its planned runs and its other runs stand in two indexes, in whose order they are read. */
export function openRunsOf(scheduleUid: string | SQL, limit: number): SQL {
  const planned = sql.raw(`('schedule', 'catchUp', 'backfill')`);
  return sql`(SELECT id FROM runs WHERE schedule_uid = ${scheduleUid} AND trigger IN ${planned} ORDER BY scheduled_for LIMIT ${limit})
    UNION ALL (SELECT id FROM runs WHERE schedule_uid BETWEEN ${scheduleUid} AND ${scheduleUid} AND trigger NOT IN ${planned}
      ORDER BY schedule_uid LIMIT ${limit}) LIMIT ${limit}`;
}

/**
 * Ends runs that wait for a schedule, or a notifier, that is gone, as another program may have left them; rows that others have locked
 * are passed over.
 */
export async function abandonWaitingOfDeleted(tx: Transaction, limit: number): Promise<AbandonedRuns> {
  const found = await onlyColumnOf<string>(tx)(sql`-- abandonWaitingOfDeleted
    SELECT r.id FROM runs r WHERE r.status = 'waiting' AND r.trigger <> 'api'
      AND NOT EXISTS (SELECT FROM schedules s WHERE s.uid = r.schedule_uid)
      AND NOT EXISTS (SELECT FROM notifiers n WHERE n.uid = r.schedule_uid) LIMIT ${limit}`);
  const done = { abandoned: 0, effects: 0 };
  for (let first = 0; first < found.length; first += MAX_AT_ONCE) {
    const ids = found.slice(first, first + MAX_AT_ONCE);
    const { abandoned, effects } = await abandonRuns(tx, ids, 'skipLocked');
    done.abandoned += abandoned;
    done.effects += effects;
  }
  return done;
}

/** Ends runs of deleted schedules, as far as they are still open. */
export async function abandonRuns(
  tx: Transaction,
  ids: readonly string[],
  meeting: MeetingLocks,
): Promise<AbandonedRuns> {
  const runs = await lockOpenRuns(tx, ids, meeting);
  if (runs.length === 0) return { abandoned: 0, effects: 0 };
  const now = await databaseNow(tx);
  const effects = await saveLockedRuns(
    tx,
    runs.map((run) => abandonedAsDeleted(run, now)),
  );
  return { abandoned: runs.length, effects };
}

/** No other run of its schedule is to start: nothing is to be judged. */
export function abandonedAsDeleted(from: RunRecord, now: Instant): RunChange {
  const run = { ...from, overlapGuarded: false };
  return { from, to: endRun(run, { status: 'abandoned', reason: 'deleted' }, now) };
}
