import { type SQL, sql } from 'drizzle-orm';
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

interface Swept {
  /** The column `run_id` of what is kept beside runs, each once, where this condition on it holds. */
  runIds: (within: SQL) => SQL;
  /** What is deleted first, of these runs: if nobody comes to the rest, the rows that lead to it are still there. */
  before?: (gone: readonly string[]) => SQL;
  tables: readonly string[];
}

/**
 * Deletes what is kept of runs that have left history: a page of it, in the order of run ids. Nothing depends on it: a key without a run is
 * free, whether its row is there or not.
 */
export function sweeperOf({ runIds, before: first, tables }: Swept) {
  return async (db: Executor, { before, after, limit }: SweptPage): Promise<Sweep> => {
    const within = sql`run_id > ${after}::uuid AND run_id < ${before}::uuid`;
    const page = await rowsOf<{ run_id: string; is_gone: boolean }>(db)(sql`-- sweeperOf
      SELECT k.run_id, NOT EXISTS (SELECT FROM all_runs r WHERE r.id = k.run_id) AS is_gone FROM (
        ${runIds(within)} ORDER BY run_id LIMIT ${limit}) AS k`);
    const gone = page.filter(({ is_gone }) => is_gone).map(({ run_id }) => run_id);
    if (gone.length > 0) {
      if (first)
        await db.execute(sql`-- sweeperOf
        ${first(gone)}`);
      for (const table of tables)
        await db.execute(sql`-- sweeperOf
          DELETE FROM ${sql.identifier(table)} k WHERE k.run_id = ANY (${uuids(gone)})
          AND NOT EXISTS (SELECT FROM all_runs r WHERE r.id = k.run_id)`);
    }
    return { next: page.length === limit ? (page.at(-1)?.run_id ?? null) : null, deleted: gone.length };
  };
}

/** Each deletes a page of what is kept beside a run, once its run is gone. */
export const SWEEPS = [
  sweeperOf({
    runIds: (within) => sql`SELECT run_id FROM run_keys WHERE ${within}`,
    tables: ['run_keys'],
  }),
  sweeperOf({
    runIds: (within) => sql`SELECT DISTINCT run_id FROM run_dependencies WHERE ${within}`,
    tables: ['run_dependencies'],
  }),
  // What callers called runs; and batches with the last of their runs.
  sweeperOf({
    runIds: (within) => sql`SELECT run_id FROM run_tags WHERE ${within}`,
    before: (gone) => sql`
      DELETE FROM batches b WHERE b.id IN (SELECT batch_id FROM run_tags WHERE run_id = ANY (${uuids(gone)}))
      AND NOT EXISTS (SELECT FROM run_tags t WHERE t.batch_id = b.id AND EXISTS (SELECT FROM all_runs r WHERE r.id = t.run_id))`,
    tables: ['run_tags'],
  }),
];
