import { type SQL, sql } from 'drizzle-orm';
import type { RunStatus } from '../../core/runs/run.ts';
import { endRun } from '../../core/runs/transitions.ts';
import { bigints, texts, uuids } from '../../postgres/sql/arrays.ts';
import { databaseNow, onlyColumnOf, rowsOf } from '../../postgres/sql/rows.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { isPull, stepTo } from '../runs/statement-parts.ts';
import type { Work } from '../../runtime/loop/wake.ts';
import { lockOpenRuns, presentAmong, saveLockedRuns } from '../runs/lock-and-save.ts';

interface Counted extends Work {
  /** Runs that failed, since one they need did not succeed. */
  failed: string[];
  /** Ends that are not counted everywhere yet: a dependent is locked by another transaction, or there are very many. */
  unfinished: ReadonlySet<string>;
  /** Those of them with very many dependents, of which some were counted. */
  begun: ReadonlySet<string>;
}

/**
 * Counts these ends on the rows of the runs that depend on them. Each dependency counts once, however often it ends: its edge is marked
 * in the same transaction, under the lock of the dependent's row. The last end releases the dependent. It does not ask whether a sibling
 * is open: of two that end at the same moment, each would see the other as still open.
 *
 * The statements come after the commit of the ends. A new dependent locks its dependencies first (lockDependencies). So it was recorded
 * before the end and is found here, or it finds the end and is counted there.
 *
 * At most `share` dependents of each end are counted, and MAX_EDGES in all.
 */
export async function countDependencies(
  tx: Transaction,
  ends: readonly EndedDependency[],
  share = MAX_EDGES,
): Promise<Counted> {
  if (ends.length === 0) return { failed: [], unfinished: new Set(), begun: new Set() };
  const edges = await openEdges(tx, ends, share);
  const free = await lockDependents(tx, edges);
  const counted = edges.filter(({ run_id }) => free.has(run_id));
  const released = await countOn(tx, counted);
  const failing = released.filter((row) => row.failed_of !== null);
  const effects = await failDependents(tx, failing);
  const ready = released.filter(({ status }) => status === 'pending');
  const cut = cutEnds(ends, edges, share);
  const countedOf = new Set(counted.map(({ depends_on }) => depends_on));
  return {
    toClaim: ready.length,
    toPull: ready.some(({ is_pull }) => is_pull),
    toAdmit: released.some(({ is_limited }) => is_limited),
    failed: failing.map(({ id }) => id),
    unfinished: new Set([
      ...cut,
      ...edges.filter(({ run_id }) => !free.has(run_id)).map(({ depends_on }) => depends_on),
    ]),
    begun: new Set(cut.filter((runId) => countedOf.has(runId))),
    effects,
  };
}

/** Ends that may have more edges than these. */
function cutEnds(ends: readonly EndedDependency[], edges: readonly EdgeRow[], share: number): string[] {
  const all = ends.map(({ runId }) => runId);
  if (edges.length >= MAX_EDGES) return all;
  const byEnd = Map.groupBy(edges, ({ depends_on }) => depends_on);
  return all.filter((runId) => (byEnd.get(runId)?.length ?? 0) >= share);
}

interface ReleasedRow {
  id: string;
  status: string;
  is_pull: boolean;
  is_limited: boolean;
  /** The dependency of which it fails, and how that ended; null: it does not. */
  failed_of: string | null;
  failed_as: string | null;
}

/** Also on dependents that have ended meanwhile (cancelled, say): opened again, they must not wait for what is over. */
async function countOn(tx: Transaction, edges: readonly EdgeRow[]): Promise<ReleasedRow[]> {
  if (edges.length === 0) return [];
  return rowsOf<ReleasedRow>(tx)(sql`-- countOn
    WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now),
    counted AS (
      UPDATE run_dependencies d SET counted_at = clock.now
      FROM clock, unnest(${uuids(edges.map(({ depends_on }) => depends_on))}, ${uuids(edges.map(({ run_id }) => run_id))},
        ${texts(edges.map(({ status }) => status))}) AS e(depends_on, run_id, status)
      WHERE d.depends_on = e.depends_on AND d.run_id = e.run_id AND d.counted_at IS NULL
      RETURNING d.run_id, d.depends_on, e.status
    ), dependents AS MATERIALIZED (
      SELECT run_id, count(*)::int AS ended,
        min(depends_on::text || ' ' || status) FILTER (WHERE status <> 'succeeded') AS failed FROM counted GROUP BY run_id
    ), in_history AS (
      UPDATE history r SET open_dependencies = r.open_dependencies - l.ended FROM dependents l WHERE r.id = l.run_id
    )
    UPDATE runs r SET open_dependencies = r.open_dependencies - l.ended, updated_at = clock.now,
      status = CASE WHEN ${GOES_ON} THEN ${sql.raw(stepTo('waiting', 'pending', 'countDependencies'))} ELSE r.status END,
      due_at = CASE WHEN ${GOES_ON} THEN greatest(r.due_at, clock.now) ELSE r.due_at END,
      ready = r.ready OR ${GOES_ON} AND r.due_at <= clock.now AND r.limit_id IS NULL
    FROM dependents l, clock WHERE r.id = l.run_id
    RETURNING r.id, r.status, ${isPull(sql`r.lane`)} AS is_pull, r.limit_id IS NOT NULL AS is_limited,
      CASE WHEN ${FAILS} THEN split_part(l.failed, ' ', 1) END AS failed_of,
      CASE WHEN ${FAILS} THEN split_part(l.failed, ' ', 2) END AS failed_as`);
}

/** Of a dependent `r` and the ends `l` counted on it now. */
const GOES_ON = sql`(r.status = 'waiting' AND r.open_dependencies = l.ended
  AND (r.on_dependency_failure = 'run' OR l.failed IS NULL))`;
const FAILS = sql`(r.status = 'waiting' AND r.on_dependency_failure = 'fail' AND l.failed IS NOT NULL)`;

async function failDependents(tx: Transaction, failing: readonly ReleasedRow[]): Promise<number> {
  if (failing.length === 0) return 0;
  const causes = new Map(failing.map((row) => [row.id, row]));
  const now = await databaseNow(tx);
  const ids = [...causes.keys()].sort();
  let effects = 0;
  for (let first = 0; first < ids.length; first += MAX_READ) {
    const runs = await lockOpenRuns(tx, ids.slice(first, first + MAX_READ), 'wait');
    effects += await saveLockedRuns(
      tx,
      runs.map((from) => {
        const { failed_of, failed_as } = causes.get(from.id) ?? { failed_of: null, failed_as: null };
        const message = `run ${failed_of ?? ''}, which it depends on, ended as ${failed_as ?? ''}`;
        return { from, to: endRun(from, { status: 'failed', error: { kind: 'dependency', message } }, now) };
      }),
    );
  }
  return effects;
}

/** Runs read and written as a whole, with their payloads, by one statement. */
const MAX_READ = 500;

/** A run that has ended, and that other runs depend on. */
interface EndedDependency {
  /** From the effect of that end. Null: the run's row is locked here, so no later end can follow this one. */
  id: number | null;
  runId: string;
  status: RunStatus | 'late';
}

/** Edges that one transaction counts: other transactions may wait for the rows it locks. */
export const MAX_EDGES = 5_000;

interface EdgeRow {
  depends_on: string;
  run_id: string;
  status: RunStatus;
}

/**
 * Leaves out runs that were opened again, or have ended once more: newer dependents must not take this end for the one they wait for.
 * One statement, so that it sees the run and the edges at one moment. At most `share` edges of each end.
 */
async function openEdges(tx: Transaction, ends: readonly EndedDependency[], share: number): Promise<EdgeRow[]> {
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
async function lockDependents(tx: Transaction, edges: readonly EdgeRow[]): Promise<ReadonlySet<string>> {
  const dependents = [...new Set(edges.map(({ run_id }) => run_id))];
  if (dependents.length === 0) return new Set();
  const lockIn = async (table: SQL, ids: readonly string[]) => {
    const isLocked = new Set(
      await onlyColumnOf<string>(tx)(sql`-- lockDependents
      SELECT id FROM ${table} WHERE id = ANY (${uuids(ids)}) ORDER BY id FOR NO KEY UPDATE SKIP LOCKED`),
    );
    return ids.filter((id) => !isLocked.has(id));
  };
  const notOpen = await lockIn(sql`runs`, dependents);
  const notLocked = notOpen.length === 0 ? [] : await lockIn(sql`history`, notOpen);
  const lockedByOthers = await presentAmong(tx, notLocked);
  return new Set(dependents.filter((id) => !lockedByOthers.has(id)));
}
