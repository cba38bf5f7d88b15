import { sql } from 'drizzle-orm';
import { OVERLAPS } from '../../core/schedules/schedule.ts';
import { texts } from '../../postgres/sql/arrays.ts';
import type { Executor } from '../../postgres/executor.ts';
import { hasActive } from './guarded-runs.ts';
import { rowsOf } from '../../postgres/sql/rows.ts';

/**
 * Schedules with runs that wait for nothing, for example since another program deleted an effect. They must be judged. Rows of the last
 * moments are left out, since they may still be under way. An `overlap` that only a newer version knows is left to that version.
 */
export async function findWaitingInVain(db: Executor, limit: number): Promise<string[]> {
  const rows = await rowsOf<{ uid: string }>(
    db,
    sql`SELECT DISTINCT w.schedule_uid AS uid FROM runs w JOIN schedules s ON s.uid = w.schedule_uid
    WHERE w.status = 'waiting' AND w.overlap_guarded
      AND w.updated_at < (SELECT clock_timestamp() - make_interval(secs => ${UNDER_WAY_SECONDS}))
      AND NOT EXISTS (SELECT FROM effects e WHERE e.schedule_uid = w.schedule_uid AND e.kind = 'overlap')
      AND NOT EXISTS (SELECT FROM backlogs b WHERE b.schedule_uid = w.schedule_uid AND b.kind = 'marked')
      AND s.overlap = ANY (${texts(OVERLAPS)}) AND (s.overlap <> 'queue'
        OR NOT ${hasActive(sql`w.schedule_uid`)}
        OR EXISTS (SELECT FROM runs other WHERE other.schedule_uid = w.schedule_uid AND other.overlap_guarded
          AND other.status = 'waiting' AND other.id <> w.id))
    LIMIT ${limit}`,
  );
  return rows.map((row) => row.uid);
}

const UNDER_WAY_SECONDS = 2;
