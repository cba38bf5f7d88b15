import { sql } from 'drizzle-orm';
import type { OfSchedule } from '../../../core/runs/new-run.ts';
import type { RunStatus } from '../../../core/runs/run.ts';
import type { RunRecord } from '../../../core/runs/run-record.ts';
import { texts, uuids } from '../../../postgres/sql/arrays.ts';
import type { Transaction } from '../../../postgres/executor.ts';
import { rowsOf } from '../../../postgres/sql/rows.ts';
import { lockEndedRuns, lockOpenRuns } from '../lock-runs.ts';
import { OF_SCHEDULE, type OfScheduleRow, ofScheduleRow } from '../of-schedule.ts';

const LOCK_IN = { runs: lockOpenRuns, history: lockEndedRuns };

/**
 * Of these runs those in one of these statuses: their rows locked, or the ids of those that another transaction has locked. What is in
 * neither answer has another status by now. All statuses are of one table.
 */
export async function lockFreeRuns(
  tx: Transaction,
  table: 'runs' | 'history',
  { ids, statuses }: { ids: readonly string[]; statuses: readonly RunStatus[] },
): Promise<{ free: RunRecord[]; locked: string[] }> {
  const rows = await LOCK_IN[table](tx, ids, 'skipLocked');
  const had = new Set(rows.map(({ id }) => id));
  const missing = ids.filter((id) => !had.has(id));
  const locked =
    missing.length === 0
      ? []
      : await rowsOf<{ id: string }>(tx)(sql`-- lockFreeRuns
        SELECT id FROM ${sql.raw(table)} WHERE id = ANY (${uuids(missing)}) AND status = ANY (${texts(statuses)})`);
  return { free: rows.filter(({ status }) => statuses.includes(status)), locked: locked.map(({ id }) => id) };
}

/**
 * What runs of the schedules of these ended runs go by now, by uid. The schedules' rows are shared until the transaction ends, so that it
 * stays so; `locked`: another transaction has them. A schedule in neither answer is gone.
 */
export async function shareFreeDefinitions(
  tx: Transaction,
  runIds: readonly string[],
): Promise<{ free: ReadonlyMap<string, OfSchedule>; locked: ReadonlySet<string> }> {
  const named = await rowsOf<{ uid: string }>(tx)(sql`-- shareFreeDefinitions
    SELECT s.uid FROM schedules s WHERE s.uid IN (SELECT schedule_uid FROM history WHERE id = ANY (${uuids(runIds)}))`);
  const uids = named.map(({ uid }) => uid);
  const rows = await rowsOf<OfScheduleRow>(tx)(sql`-- shareFreeDefinitions
    SELECT ${OF_SCHEDULE} FROM schedules s WHERE s.uid = ANY (${uuids(uids)}) ORDER BY s.uid FOR SHARE SKIP LOCKED`);
  const free = new Map(rows.map((row) => [row.uid, ofScheduleRow(row)]));
  return { free, locked: new Set(uids.filter((uid) => !free.has(uid))) };
}
