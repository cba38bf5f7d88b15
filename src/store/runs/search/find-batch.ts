import { sql } from 'drizzle-orm';
import type { Scope } from '../../../core/access/scope.ts';
import type { Instant } from '../../../core/instant.ts';
import type { Batch } from '../../../core/runs/one-off-run.ts';
import type { RunStatus } from '../../../core/runs/run.ts';
import type { Executor } from '../../../postgres/executor.ts';
import { type InstantText, rowsOf, toInstant } from '../../../postgres/sql/rows.ts';
import { tagInScope } from '../run-tags.ts';
import { runsInScope, runsSeen } from '../../scopes/in-scope.ts';

interface BatchItem {
  ref: string;
  id: string;
  status: RunStatus;
  /** Refs of the batch, and ids of other runs, as they were listed. */
  dependsOn: string[];
}

interface FoundBatch extends Batch {
  id: string;
  createdAt: Instant;
  items: BatchItem[];
}

interface ItemRow {
  id: string;
  ref: string;
  status: RunStatus;
  /** Ids, joined by commas; null: it depends on none. */
  depends_on: string | null;
}

/** With its runs that are kept, and that a caller of this scope may read; null: there are none. */
export async function findBatch(db: Executor, id: string, scope: Scope): Promise<FoundBatch | null> {
  type Row = Batch & { created_at: InstantText };
  const [batch] = await rowsOf<Row>(db)(sql`-- findBatch
    SELECT b.name, b.labels, b.created_at FROM batches b WHERE b.id = ${id}::uuid AND EXISTS (SELECT FROM run_tags t
      WHERE t.batch_id = b.id AND t.batch_id IS NOT NULL${tagInScope(scope, 'read')})`);
  if (!batch) return null;
  const { name, labels, created_at: createdAt } = batch;
  const rows = await itemsOf(db, { id, createdAt }, scope);
  if (rows.length === 0) return null;
  const refs = new Map(rows.map((row) => [row.id, row.ref]));
  const seen = await othersSeen(db, rows, refs, scope);
  const items = rows.map(({ depends_on: others, ...item }) => ({
    ...item,
    dependsOn: others?.split(',').flatMap((other) => refs.get(other) ?? (seen(other) ? [other] : [])) ?? [],
  }));
  return { id, name, labels, createdAt: toInstant(createdAt), items };
}

/** Of the history it asks only days since the batch was recorded, and one before: the clock may have been set back. */
async function itemsOf(
  db: Executor,
  { id, createdAt }: { id: string; createdAt: InstantText },
  scope: Scope,
): Promise<ItemRow[]> {
  const columns = sql`r.id, r.status, r.open_dependencies`;
  const conditions = sql.join(
    [sql`r.id = ANY (ARRAY(SELECT run_id FROM tagged))`, ...runsInScope(scope, 'read')],
    sql` AND `,
  );
  return rowsOf<ItemRow>(db)(sql`-- itemsOf
    WITH tagged AS MATERIALIZED (SELECT run_id, ref, place FROM run_tags WHERE batch_id = ${id}::uuid AND batch_id IS NOT NULL),
    kept AS MATERIALIZED (SELECT ${columns} FROM runs r WHERE ${conditions}
      UNION ALL SELECT ${columns} FROM history r WHERE ${conditions} AND r.ended_at >= ${createdAt}::timestamptz - interval '1 day')
    SELECT k.id, t.ref, k.status, CASE WHEN k.open_dependencies IS NOT NULL THEN
      (SELECT string_agg(d.depends_on::text, ',' ORDER BY d.position) FROM run_dependencies d WHERE d.run_id = k.id) END AS depends_on
    FROM kept k JOIN tagged t ON t.run_id = k.id ORDER BY t.place`);
}

async function othersSeen(
  db: Executor,
  rows: readonly ItemRow[],
  refs: ReadonlyMap<string, string>,
  scope: Scope,
): Promise<(id: string) => boolean> {
  if (scope === null) return () => true;
  const others = new Set(
    rows.flatMap((row) => row.depends_on?.split(',') ?? []).filter((id) => !refs.has(id)),
  );
  const seen = await runsSeen(db, [...others], scope);
  return (id) => seen.has(id);
}
