import { type SQL, sql } from 'drizzle-orm';
import { endRun } from '../../../core/runs/transitions.ts';
import { databaseNow } from '../../../postgres/sql/database-now.ts';
import type { Transaction } from '../../../postgres/executor.ts';
import { rowsOf } from '../../../postgres/sql/rows.ts';
import { type MeetingLocks, lockOpenRuns } from '../lock-runs.ts';
import { saveLockedRuns } from '../save-runs.ts';

interface AbandonedRuns {
  abandoned: number;
  effects: number;
}

/** Ends the open runs of a schedule that is deleted in this transaction; rows that others have locked are waited for. */
export async function abandonOpenRuns(tx: Transaction, scheduleUid: string): Promise<AbandonedRuns> {
  // Planned and other runs of a schedule stand in two indexes.
  const ofSchedule = (planned: SQL) =>
    sql`SELECT id FROM runs WHERE schedule_uid = ${scheduleUid} AND trigger ${planned} ('schedule', 'catchUp', 'backfill')`;
  return abandon(tx, sql`${ofSchedule(sql`IN`)} UNION ALL ${ofSchedule(sql`NOT IN`)}`, 'wait');
}

/**
 * Ends runs that wait for a schedule that is gone, as another program may have left them; rows that others have locked are passed over.
 */
export async function abandonWaitingOfDeleted(tx: Transaction, limit: number): Promise<AbandonedRuns> {
  return abandon(
    tx,
    sql`SELECT r.id FROM runs r WHERE r.status = 'waiting' AND r.trigger <> 'api'
      AND NOT EXISTS (SELECT FROM schedules s WHERE s.uid = r.schedule_uid) LIMIT ${limit}`,
    'skipLocked',
  );
}

/** Runs written by one statement: each takes a few KiB at most, but for its payload. */
const MAX_AT_ONCE = 500;

async function abandon(tx: Transaction, found: SQL, meeting: MeetingLocks): Promise<AbandonedRuns> {
  const ids = (await rowsOf<{ id: string }>(tx, found)).map(({ id }) => id).sort();
  const done = { abandoned: 0, effects: 0 };
  for (let first = 0; first < ids.length; first += MAX_AT_ONCE) {
    const runs = await lockOpenRuns(tx, ids.slice(first, first + MAX_AT_ONCE), meeting);
    const now = await databaseNow(tx);
    const end = { status: 'abandoned', reason: 'deleted' } as const;
    done.effects += await saveLockedRuns(
      tx,
      runs.map((from) => ({ from, to: endRun(from, end, now) })),
    );
    done.abandoned += runs.length;
  }
  return done;
}
