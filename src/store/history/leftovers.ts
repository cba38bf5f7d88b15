import { sql } from 'drizzle-orm';
import { uuids } from '../../postgres/sql/arrays.ts';
import type { Executor } from '../../postgres/executor.ts';
import { rowsOf } from '../../postgres/sql/rows.ts';

/** What remains when a day of history is dropped unread: keys, dependencies and tags of its runs, and batches. */

/** Ids of runs, up to `before`. */
export interface SweptPage {
  after: string;
  before: string;
  limit: number;
}

export interface Sweep {
  /** Where the next page begins; null: this was the last one. */
  next: string | null;
  deleted: number;
}

/**
 * Deletes keys whose run has left history: a page of keys, in the order of run ids. Nothing depends on it: a key without a run is free,
 * whether its row is there or not.
 */
async function sweepKeys(db: Executor, { before, after, limit }: SweptPage): Promise<Sweep> {
  const page = await rowsOf<{ run_id: string; is_gone: boolean }>(db)(sql`-- sweepKeys
    SELECT k.run_id, NOT EXISTS (SELECT FROM all_runs r WHERE r.id = k.run_id) AS is_gone FROM (
      SELECT run_id FROM run_keys WHERE run_id > ${after}::uuid AND run_id < ${before}::uuid
      ORDER BY run_id LIMIT ${limit}) AS k`);
  const gone = page.filter(({ is_gone }) => is_gone).map(({ run_id }) => run_id);
  if (gone.length > 0) {
    await db.execute(sql`-- sweepKeys
      DELETE FROM run_keys k WHERE k.run_id = ANY (${uuids(gone)})
      AND NOT EXISTS (SELECT FROM all_runs r WHERE r.id = k.run_id)`);
  }
  return { next: page.length === limit ? (page.at(-1)?.run_id ?? null) : null, deleted: gone.length };
}

/** Deletes the dependencies of runs that history has dropped, in the same way. */
async function sweepDependencies(db: Executor, { before, after, limit }: SweptPage): Promise<Sweep> {
  const page = await rowsOf<{ run_id: string; is_gone: boolean }>(db)(sql`-- sweepDependencies
    SELECT d.run_id, NOT EXISTS (SELECT FROM all_runs r WHERE r.id = d.run_id) AS is_gone FROM (
      SELECT DISTINCT run_id FROM run_dependencies
      WHERE run_id > ${after}::uuid AND run_id < ${before}::uuid
      ORDER BY run_id LIMIT ${limit}) AS d`);
  const gone = page.filter(({ is_gone }) => is_gone).map(({ run_id }) => run_id);
  if (gone.length > 0) {
    await db.execute(sql`-- sweepDependencies
      DELETE FROM run_dependencies d WHERE d.run_id = ANY (${uuids(gone)})
      AND NOT EXISTS (SELECT FROM all_runs r WHERE r.id = d.run_id)`);
  }
  return { next: page.length === limit ? (page.at(-1)?.run_id ?? null) : null, deleted: gone.length };
}

/** Deletes what callers called runs that history has dropped, in the same way; and batches with the last of their runs. */
async function sweepTags(db: Executor, { before, after, limit }: SweptPage): Promise<Sweep> {
  const page = await rowsOf<{ run_id: string; is_gone: boolean }>(db)(sql`-- sweepTags
    SELECT t.run_id, NOT EXISTS (SELECT FROM all_runs r WHERE r.id = t.run_id) AS is_gone FROM (
      SELECT run_id FROM run_tags WHERE run_id > ${after}::uuid AND run_id < ${before}::uuid
      ORDER BY run_id LIMIT ${limit}) AS t`);
  const gone = page.filter(({ is_gone }) => is_gone).map(({ run_id }) => run_id);
  if (gone.length > 0) {
    // The batches first: if nobody comes to the second statement, the rows that lead to them are still there.
    await db.execute(sql`-- sweepTags
      DELETE FROM batches b WHERE b.id IN (SELECT batch_id FROM run_tags WHERE run_id = ANY (${uuids(gone)}))
      AND NOT EXISTS (SELECT FROM run_tags t WHERE t.batch_id = b.id AND EXISTS (SELECT FROM all_runs r WHERE r.id = t.run_id))`);
    await db.execute(sql`-- sweepTags
      DELETE FROM run_tags t WHERE t.run_id = ANY (${uuids(gone)})
      AND NOT EXISTS (SELECT FROM all_runs r WHERE r.id = t.run_id)`);
  }
  return { next: page.length === limit ? (page.at(-1)?.run_id ?? null) : null, deleted: gone.length };
}

/** Each deletes a page of what is kept beside a run, once its run is gone. */
export const SWEEPS = [sweepKeys, sweepDependencies, sweepTags];
