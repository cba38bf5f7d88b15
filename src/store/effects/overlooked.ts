import { sql } from 'drizzle-orm';
import { OVERLAPS } from '../../core/schedules/schedule.ts';
import type { Executor, Transaction } from '../../postgres/executor.ts';
import { FIRST_UUID, texts, uuids } from '../../postgres/sql/arrays.ts';
import { onlyColumnOf, recordsOf, rowsOf } from '../../postgres/sql/rows.ts';
import { hasActive } from '../runs/guarded-runs.ts';
import { RECORD_COLUMNS, type RecordRow, toRecord } from '../runs/record-columns.ts';
import { writeEffects } from './insert-effects.ts';

/** Where the next look at open dependencies goes on. */
export interface EdgeCursor {
  dependsOn: string;
  runId: string;
}

export const FIRST_EDGE: EdgeCursor = { dependsOn: FIRST_UUID, runId: FIRST_UUID };

/**
 * Writes the missing effect if a run waits for a dependency that has ended. Another program may have deleted that effect. A pass looks at
 * some of all open dependencies, since in a healthy installation it finds nothing. An end writes its effect in one commit; the effect
 * counts its dependencies and is deleted in one commit. So one statement, which sees one moment, finds missing effects and none that are
 * under way. Answers how many effects it wrote.
 */
export async function effectsForOverlooked(
  tx: Transaction,
  after: EdgeCursor,
  limit: number,
): Promise<{ found: number; next: EdgeCursor | null }> {
  const edges = await recordsOf<EdgeCursor & { overlooked: boolean }>(tx)(sql`-- effectsForOverlooked
    SELECT d.depends_on, d.run_id,
      NOT EXISTS (SELECT FROM runs r WHERE r.id = d.depends_on) AND EXISTS (SELECT FROM history r WHERE r.id = d.depends_on)
        AND NOT EXISTS (SELECT FROM effects e WHERE e.run_id = d.depends_on AND e.kind = 'dependents') AS overlooked
    FROM run_dependencies d
    WHERE d.counted_at IS NULL AND (d.depends_on, d.run_id) > (${after.dependsOn}::uuid, ${after.runId}::uuid)
    ORDER BY d.depends_on, d.run_id LIMIT ${limit}`);
  const last = edges.length === limit ? edges.at(-1) : undefined;
  const next = last ? { dependsOn: last.dependsOn, runId: last.runId } : null;
  const overlooked = edges.filter((edge) => edge.overlooked).map(({ dependsOn }) => dependsOn);
  if (overlooked.length === 0) return { found: 0, next };
  const ended = await rowsOf<RecordRow>(tx)(sql`-- effectsForOverlooked
    SELECT ${RECORD_COLUMNS.history} FROM history r WHERE r.id = ANY (${uuids([...new Set(overlooked)])})`);
  const wanted = ended.map((row) => ({ kind: 'dependents' as const, run: toRecord(row) }));
  return { found: await writeEffects(tx, wanted), next };
}

/**
 * Schedules with runs that wait for nothing, for example since another program deleted an effect. They must be judged. Rows of the last
 * moments are left out, since they may still be under way. An `overlap` that only a newer version knows is left to that version.
 */
export async function findWaitingInVain(db: Executor, limit: number): Promise<string[]> {
  return onlyColumnOf<string>(db)(sql`-- findWaitingInVain
    SELECT DISTINCT w.schedule_uid AS uid FROM runs w JOIN schedules s ON s.uid = w.schedule_uid
    WHERE w.status = 'waiting' AND w.overlap_guarded
      AND w.updated_at < (SELECT clock_timestamp() - make_interval(secs => ${UNDER_WAY_SECONDS}))
      AND NOT EXISTS (SELECT FROM effects e WHERE e.schedule_uid = w.schedule_uid AND e.kind = 'overlap')
      AND NOT EXISTS (SELECT FROM backlogs b WHERE b.schedule_uid = w.schedule_uid AND b.kind = 'marked')
      AND s.overlap = ANY (${texts(OVERLAPS)}) AND (s.overlap <> 'queue'
        OR NOT ${hasActive(sql`w.schedule_uid`)}
        OR EXISTS (SELECT FROM runs other WHERE other.schedule_uid = w.schedule_uid AND other.overlap_guarded
          AND other.status = 'waiting' AND other.id <> w.id))
    LIMIT ${limit}`);
}

const UNDER_WAY_SECONDS = 2;
