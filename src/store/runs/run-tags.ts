import { type SQL, sql } from 'drizzle-orm';
import type { Scope } from '../../core/access/scope.ts';
import { type Instant, isoInstant } from '../../core/instant.ts';
import type { Batch, OneOffHandoff } from '../../core/runs/one-off-run.ts';
import type { RunStatus } from '../../core/runs/run.ts';
import type { Executor, Transaction } from '../../postgres/executor.ts';
import { ints, texts, uuids } from '../../postgres/sql/arrays.ts';
import { type InstantText, NO_SCHEDULE, onlyColumnOf, rowsOf, toInstant } from '../../postgres/sql/rows.ts';
import { type RunUse, eachRange, runsInScope, runsSeen } from '../scopes/in-scope.ts';
import { ONE_OFF_KEYS } from './idempotency-keys.ts';

/** What its caller calls a one-off run. */
interface RunTag {
  runId: string;
  /** Null: it was asked for alone. */
  ref: string | null;
  place: number;
  labels: Readonly<Record<string, string>>;
}

/** Of new runs. Those that were asked for alone, without labels, have no row. */
export async function recordTags(tx: Transaction, tags: readonly RunTag[], batchId: string | null): Promise<void> {
  const isTold = ({ labels }: RunTag): boolean => Object.keys(labels).length > 0;
  const told = batchId === null ? tags.filter(isTold) : tags;
  if (told.length === 0) return;
  await tx.execute(sql`-- recordTags
    INSERT INTO run_tags (run_id, batch_id, ref, place, labels)
    SELECT t.run_id, ${batchId}::uuid, t.ref, t.place, t.labels::jsonb
    FROM unnest(${uuids(told.map(({ runId }) => runId))}, ${texts(told.map(({ ref }) => ref))},
      ${ints(told.map(({ place }) => place))},
      ${texts(told.map((tag) => (isTold(tag) ? JSON.stringify(tag.labels) : null)))}) AS t(run_id, ref, place, labels)`);
}

export async function recordBatch(tx: Transaction, id: string, { name, labels }: Batch, now: Instant): Promise<void> {
  await tx.execute(sql`-- recordBatch
    INSERT INTO batches (id, name, labels, created_at)
    VALUES (${id}::uuid, ${name}, ${JSON.stringify(labels)}::jsonb, ${isoInstant(now)}::timestamptz)`);
}

/** The batch that all of these runs are in; null: there is none. */
export async function commonBatch(db: Executor, runIds: readonly string[]): Promise<string | null> {
  const rows = await rowsOf<{ batch_id: string; runs: number }>(db)(sql`-- commonBatch
    SELECT batch_id, count(*)::int AS runs FROM run_tags
    WHERE run_id = ANY (${uuids(runIds)}) AND batch_id IS NOT NULL GROUP BY batch_id LIMIT 2`);
  const [first] = rows;
  return first?.runs === new Set(runIds).size ? first.batch_id : null;
}

/** Of a batch, what a caller of this scope may use so. */
export async function runIdsOfBatch(db: Executor, batchId: string, scope: Scope, use: RunUse): Promise<string[]> {
  return onlyColumnOf<string>(db)(sql`-- runIdsOfBatch
    SELECT t.run_id FROM run_tags t WHERE t.batch_id = ${batchId}::uuid AND t.batch_id IS NOT NULL${tagInScope(scope, use)}`);
}

/** Of a row `t`: by the key of its run. Of runs of others not even their number shows, in whatever is asked next. */
export function tagInScope(scope: Scope, use: RunUse): SQL {
  if (scope === null) return sql``;
  const ranges = eachRange(sql`k.key COLLATE "C"`, scope, use);
  return sql` AND (SELECT true FROM run_keys k WHERE k.run_id = t.run_id AND k.scope = ${ONE_OFF_KEYS}::uuid
    AND (${sql.join(ranges, sql` OR `)}) LIMIT 1)`;
}

/** A definition of one-off runs never changes: what would change makes another one. */
export const ONE_OFF_VERSION = 1;

/**
 * Keeps definitions of one-off runs, by their uid. An old one is marked as in use again, so that retention does not drop it with the
 * history of earlier runs.
 */
export async function keepDefinitions(tx: Transaction, definitions: ReadonlyMap<string, OneOffHandoff>): Promise<void> {
  const sorted = [...definitions].sort(([a], [b]) => (a < b ? -1 : 1));
  const uids = uuids(sorted.map(([uid]) => uid));
  const fresh = new Set(
    await onlyColumnOf<string>(tx)(sql`-- keepDefinitions
    SELECT schedule_uid AS uid FROM schedule_versions WHERE schedule_uid = ANY (${uids})
      AND at > (SELECT clock_timestamp() - make_interval(secs => ${FRESH_SECONDS}))`),
  );
  const toKeep = sorted.filter(([uid]) => !fresh.has(uid));
  if (toKeep.length === 0) return;
  await tx.execute(sql`-- keepDefinitions
    INSERT INTO schedule_versions (schedule_uid, version, schedule_id, change, at, definition)
    SELECT d.uid, ${ONE_OFF_VERSION}, ${NO_SCHEDULE}, 'created', clock_timestamp(), d.definition::jsonb
    FROM unnest(${uuids(toKeep.map(([uid]) => uid))}, ${texts(toKeep.map(([, handoff]) => JSON.stringify(handoff)))})
      WITH ORDINALITY AS d(uid, definition, place)
    ORDER BY place ON CONFLICT (schedule_uid, version) DO UPDATE SET at = excluded.at`);
}

/** Far less than the retention. Otherwise every call would update, and wait for, the row of its definition. */
const FRESH_SECONDS = 3600;

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
  const others = new Set(rows.flatMap((row) => row.depends_on?.split(',') ?? []).filter((id) => !refs.has(id)));
  const seen = await runsSeen(db, [...others], scope);
  return (id) => seen.has(id);
}
