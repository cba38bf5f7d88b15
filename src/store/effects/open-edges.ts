import { type SQL, sql } from 'drizzle-orm';
import type { RunStatus } from '../../core/runs/run.ts';
import { bigints, texts, uuids } from '../../postgres/sql/arrays.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { rowsOf } from '../../postgres/sql/rows.ts';
import { presentAmong } from '../runs/lock-runs.ts';

/** A run that has ended, and that other runs depend on. */
export interface EndedDependency {
  /** From the effect of that end. Null: the run's row is locked here, so no later end can follow this one. */
  id: number | null;
  runId: string;
  status: RunStatus | 'late';
}

/** Edges that one transaction counts: other transactions may wait for the rows it locks. */
export const MAX_EDGES = 5_000;

export interface EdgeRow {
  depends_on: string;
  run_id: string;
  status: RunStatus;
}

/**
 * Leaves out runs that were opened again, or have ended once more: newer dependents must not take this end for the one they wait for.
 * One statement, so that it sees the run and the edges at one moment. At most `share` edges of each end.
 */
export async function openEdges(
  tx: Transaction,
  ends: readonly EndedDependency[],
  share: number,
): Promise<EdgeRow[]> {
  return rowsOf<EdgeRow>(tx)(sql`-- openEdges
    SELECT d.depends_on, d.run_id, e.status
    FROM (SELECT * FROM unnest(${bigints(ends.map(({ id }) => id))}, ${uuids(ends.map(({ runId }) => runId))},
        ${texts(ends.map(({ status }) => status))}) AS e(effect_id, id, status)
      WHERE NOT EXISTS (SELECT FROM runs r WHERE r.id = e.id) AND NOT EXISTS (SELECT FROM effects newer
        WHERE newer.run_id = e.id AND newer.kind = 'dependents' AND newer.id > e.effect_id)) AS e,
      LATERAL (SELECT depends_on, run_id FROM run_dependencies WHERE depends_on = e.id AND counted_at IS NULL
        ORDER BY run_id LIMIT ${share}) AS d
    LIMIT ${MAX_EDGES}`);
}

/** Dependents whose rows can be had, open or ended, or that are gone. */
export async function lockDependents(
  tx: Transaction,
  edges: readonly EdgeRow[],
): Promise<ReadonlySet<string>> {
  const dependents = [...new Set(edges.map(({ run_id }) => run_id))];
  if (dependents.length === 0) return new Set();
  const lockIn = async (table: SQL, ids: readonly string[]) => {
    const locked = await rowsOf<{ id: string }>(tx)(sql`-- lockDependents
      SELECT id FROM ${table} WHERE id = ANY (${uuids(ids)}) ORDER BY id FOR NO KEY UPDATE SKIP LOCKED`);
    const isLocked = new Set(locked.map(({ id }) => id));
    return ids.filter((id) => !isLocked.has(id));
  };
  const notOpen = await lockIn(sql`runs`, dependents);
  const notLocked = notOpen.length === 0 ? [] : await lockIn(sql`history`, notOpen);
  const lockedByOthers = await presentAmong(tx, notLocked);
  return new Set(dependents.filter((id) => !lockedByOthers.has(id)));
}
