import { sql } from 'drizzle-orm';
import type { Transaction } from '../executor.ts';
import { rowsOf } from '../rows.ts';
import { RECORD_COLUMNS, type RecordRow, toRecord } from '../runs/records.ts';
import { writeEffects } from './insert-effects.ts';

/** Where the next look at open dependencies goes on. */
export interface EdgeCursor {
  dependsOn: string;
  runId: string;
}

export const FIRST_EDGE: EdgeCursor = {
  dependsOn: '00000000-0000-0000-0000-000000000000',
  runId: '00000000-0000-0000-0000-000000000000',
};

/**
 * Writes the effect that is missing where a run waits for a dependency that has ended: one that another program has deleted, say. A pass
 * looks at some of all open dependencies, since in a healthy installation it finds nothing. Answers how many effects it wrote.
 */
export async function effectsForOverlooked(
  tx: Transaction,
  after: EdgeCursor,
  limit: number,
): Promise<{ found: number; next: EdgeCursor | null }> {
  const page = await rowsOf<{ depends_on: string; run_id: string }>(
    tx,
    sql`SELECT depends_on, run_id FROM run_dependencies
    WHERE counted_at IS NULL AND (depends_on, run_id) > (${after.dependsOn}::uuid, ${after.runId}::uuid)
    ORDER BY depends_on, run_id LIMIT ${limit}`,
  );
  const last = page.length === limit ? page.at(-1) : undefined;
  const next = last ? { dependsOn: last.depends_on, runId: last.run_id } : null;
  if (page.length === 0) return { found: 0, next };
  const ids = [...new Set(page.map(({ depends_on }) => depends_on))];
  const ended = await rowsOf<RecordRow>(
    tx,
    sql`SELECT ${RECORD_COLUMNS.history} FROM history r WHERE r.id = ANY (${`{${ids.join(',')}}`}::uuid[])
      AND r.ended_at < (SELECT clock_timestamp() - make_interval(secs => ${UNDER_WAY_SECONDS}))
      AND NOT EXISTS (SELECT FROM effects e WHERE e.run_id = r.id AND e.kind = 'dependents')`,
  );
  const wanted = ended.map((row) => ({ kind: 'dependents' as const, run: toRecord(row) }));
  return { found: await writeEffects(tx, wanted), next };
}

/** What ended in the last moments may be counted right now. */
const UNDER_WAY_SECONDS = 2;
