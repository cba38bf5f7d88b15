import { sql } from 'drizzle-orm';
import type { RunRecord } from '../../core/runs/run-record.ts';
import type { RunStatus } from '../../core/runs/run.ts';
import { hasOneOfIds, uuids } from '../../postgres/sql/arrays.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { rowsOf } from '../../postgres/sql/rows.ts';

/** That a run depends on another, whose end may have been counted. */
interface CountedEdge {
  runId: string;
  dependsOn: string;
  isCounted: boolean;
}

/** What some runs depend on, and where that stands. */
export interface Dependencies {
  edges: ReadonlyMap<string, CountedEdge[]>;
  /** Open ones, which no other transaction ends until this one has ended. */
  open: ReadonlySet<string>;
  ended: ReadonlyMap<string, RunStatus>;
  /** Open ones that another transaction has locked. */
  locked: ReadonlySet<string>;
}

export async function dependenciesOf(tx: Transaction, runIds: readonly string[]): Promise<Dependencies> {
  const edges = await edgesOf(tx, runIds);
  const ids = [...new Set(edges.map(({ dependsOn }) => dependsOn))];
  const open = await openAmong(tx, ids, true);
  const others = ids.filter((id) => !open.has(id));
  const rows =
    others.length === 0
      ? []
      : await rowsOf<{ id: string; status: RunStatus }>(tx)(sql`-- dependenciesOf
        SELECT id, status FROM history WHERE ${hasOneOfIds(sql`id`, others)}`);
  const ended = new Map(rows.map(({ id, status }) => [id, status]));
  const missing = others.filter((id) => !ended.has(id));
  return {
    edges: Map.groupBy(edges, ({ runId }) => runId),
    open,
    ended,
    locked: await openAmong(tx, missing, false),
  };
}

export function areLocked({ edges, locked }: Dependencies, runId: string): boolean {
  return edges.get(runId)?.some(({ dependsOn }) => locked.has(dependsOn)) === true;
}

/** One of them has ended otherwise than well; or the one that it failed for was dropped from history. */
export function isStillFailed(dependencies: Dependencies, { id, error }: RunRecord): boolean {
  const { edges, open, ended } = dependencies;
  return (edges.get(id) ?? []).some(({ dependsOn }) => {
    if (open.has(dependsOn)) return false;
    const status = ended.get(dependsOn);
    return status === undefined ? error?.message.includes(dependsOn) === true : status !== 'succeeded';
  });
}

export function openOf({ edges, open }: Dependencies, runId: string): CountedEdge[] {
  return (edges.get(runId) ?? []).filter(({ dependsOn }) => open.has(dependsOn));
}

/** The ends to come of these runs' open dependencies count as if there had been none before. */
export async function countAgain(
  tx: Transaction,
  dependencies: Dependencies,
  runIds: ReadonlySet<string>,
): Promise<void> {
  const again = [...runIds].flatMap((id) => openOf(dependencies, id).filter(({ isCounted }) => isCounted));
  if (again.length === 0) return;
  await tx.execute(sql`-- countAgain
    UPDATE run_dependencies d SET counted_at = NULL
    FROM unnest(${uuids(again.map(({ dependsOn }) => dependsOn))}, ${uuids(again.map(({ runId }) => runId))}) AS e(depends_on, run_id)
    WHERE d.depends_on = e.depends_on AND d.run_id = e.run_id`);
}

async function edgesOf(tx: Transaction, runIds: readonly string[]): Promise<CountedEdge[]> {
  if (runIds.length === 0) return [];
  const rows = await rowsOf<{ run_id: string; depends_on: string; is_counted: boolean }>(tx)(sql`-- edgesOf
    SELECT run_id, depends_on, counted_at IS NOT NULL AS is_counted FROM run_dependencies WHERE run_id = ANY (${uuids(runIds)})`);
  return rows.map((row) => ({ runId: row.run_id, dependsOn: row.depends_on, isCounted: row.is_counted }));
}

async function openAmong(
  tx: Transaction,
  ids: readonly string[],
  locks: boolean,
): Promise<ReadonlySet<string>> {
  if (ids.length === 0) return new Set();
  const rows = await rowsOf<{ id: string }>(tx)(sql`-- openAmong
    SELECT id FROM runs WHERE id = ANY (${uuids(ids)}) ${locks ? sql`ORDER BY id FOR NO KEY UPDATE SKIP LOCKED` : sql``}`);
  return new Set(rows.map(({ id }) => id));
}
