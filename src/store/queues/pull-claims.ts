import { type SQL, sql } from 'drizzle-orm';
import type { Scope } from '../../core/access/scope.ts';
import { PRIORITY_RANK } from '../../core/schedules/schedule.ts';
import { anyUid, booleans, doubles, ints, texts, uuids } from '../../postgres/sql/arrays.ts';
import type { Executor, Transaction } from '../../postgres/executor.ts';
import { laneOfQueue } from '../../core/runs/run-lane.ts';
import { rowsOf } from '../../postgres/sql/rows.ts';
import { noHandoffs } from '../instances/installation-row.ts';
import { MAY_BEGIN } from '../runs/begin-by.ts';
import { IS_TO_BEGIN, judgeBegunUnderLock, setNotBegun } from '../runs/bounds.ts';
import { BEING_DELETED, MAX_ATTEMPTS } from '../runs/claims/claims.ts';
import { stepTo } from '../runs/statement-parts.ts';
import { type Dependency, type Run, dependencyOf, mayBeRunId } from '../../core/runs/run.ts';
import { type Parent, isParentRun } from '../../core/runs/parent.ts';
import { findOutcomes, listRuns } from '../runs/search/find-runs.ts';
import { runsSeen } from '../scopes/in-scope.ts';

/** What one worker asks for. */
export interface PullAsk {
  workerId: string;
  max: number;
  /** How long the worker may be silent. */
  leaseSeconds: number;
  /** Of its caller. */
  scope: Scope;
}

export interface Pulled {
  /** The runs for each of the asks, in their order. */
  given: PulledRun[][];
  /** More runs are due than one answer could contain. */
  isCut: boolean;
}

interface PullClaim {
  queue: string;
  /** The instance that serves the claim; its death means nothing for the runs. */
  instanceId: string;
  /** In the order in which they are served. */
  asks: readonly PullAsk[];
}

/**
 * Leases due, unclaimed runs of a queue to workers, by priority and due time. Each worker gets up to its `max`, in the order of
 * `asks`. The answer is the handoff, so all of it is read in the transaction of the claim: if the database fails in
 * between, nothing is leased. Nothing is while maintenance holds runs, or the instances only observe.
 */
export async function claimPullRuns(tx: Transaction, { queue, ...claim }: PullClaim): Promise<Pulled> {
  const slots = claim.asks.flatMap((ask, index) => Array.from({ length: ask.max }, () => ({ ...ask, index })));
  const rows = await rowsOf<ClaimedRow>(tx)(sql`-- claimPullRuns
    WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now),
    allowed AS MATERIALIZED (SELECT NOT ${noHandoffs} AS yes), ${dueByPriority(queue, slots.length)},
    due AS MATERIALIZED (
      SELECT *, row_number() OVER next AS place, sum(dependencies) OVER next AS told FROM (
        SELECT *, CASE WHEN open_dependencies IS NULL THEN 0
          ELSE (SELECT count(*) FROM run_dependencies d WHERE d.run_id = every.id) END AS dependencies
        FROM (${allDue}) AS every) AS counted
      WINDOW next AS (ORDER BY priority, due_at, id)
    ), chosen AS (
      SELECT * FROM due WHERE place = 1 OR told <= ${MAX_DEPENDENCIES_SHOWN}
    )
    UPDATE runs r SET status = ${sql.raw(stepTo('pending', 'running', 'claimPullRuns'))}, attempts = r.attempts + 1,
      claimed_by = ${claim.instanceId}, worker_id = slot.worker_id, lease_seconds = slot.lease_seconds,
      expires_at = clock.now + make_interval(secs => slot.lease_seconds),
      claimed_at = clock.now, first_claimed_at = coalesce(r.first_claimed_at, clock.now), handoff_started_at = clock.now, handed_off_at = clock.now,
      lateness_ms = coalesce(r.lateness_ms, round(extract(epoch FROM clock.now - r.due_at) * 1000)::bigint),
      in_doubt_until = NULL, attempt_in_doubt = NULL, lookups = 0, progress = NULL, error = NULL, result_status_code = NULL, result_body = NULL,
      updated_at = clock.now
    FROM clock, chosen JOIN unnest(${texts(slots.map((slot) => slot.workerId))}, ${doubles(slots.map((slot) => slot.leaseSeconds))})
      WITH ORDINALITY AS slot(worker_id, lease_seconds, place) ON slot.place = chosen.place
    WHERE r.id = chosen.id AND ${anyUid(sql`chosen.id`)}
    RETURNING r.id, chosen.place::int, chosen.lateness_ms IS NULL AS is_first, (SELECT count(*) FROM due)::int AS due,
      ${IS_TO_BEGIN} AS to_begin`);
  await judgeBegunUnderLock(tx, idsToBegin(rows));
  const asked = rows.map((row) => ({ ...row, scope: slots[row.place - 1]?.scope ?? null }));
  const runs = await readPulledRuns(tx, asked);
  const given: PulledRun[][] = claim.asks.map(() => []);
  for (const row of rows.sort((a, b) => a.place - b.place)) {
    const pulled = runs.get(row.id);
    const slot = slots[row.place - 1];
    // If another program wrote a row whose id does not lead to it, that run must not delay the others: its lease runs out.
    if (pulled && slot) given[slot.index]?.push(pulled);
  }
  return { given, isCut: (rows[0]?.due ?? 0) > rows.length };
}

function idsToBegin(rows: readonly ClaimedRow[]): string[] {
  return rows.filter(({ to_begin }) => to_begin === true).map(({ id }) => id);
}

const RANKS = Object.values(PRIORITY_RANK).sort((a, b) => a - b);

interface ClaimedRow {
  id: string;
  place: number;
  is_first: boolean;
  /** In the whole claim. */
  due: number;
  to_begin: true | null;
}

/**
 * Due runs up to `most`, in one part per priority, so that runs of tomorrow are not read. Each part takes and locks only as many as the
 * parts before it left: a locked run that is not taken would be kept from another worker. The inner limit adds no rule, but the
 * planner can use it: for the outer one it assumes a tenth of the backlog, and sorts all of it.
 */
function dueByPriority(queue: string, limit: number): SQL {
  const parts = RANKS.map((rank, index) => {
    const before = RANKS.slice(0, index).map((one) => sql` - (SELECT count(*) FROM ${part(one)})`);
    return sql`${part(rank)} AS MATERIALIZED (
      SELECT * FROM (
        SELECT id, priority, due_at, lateness_ms, open_dependencies FROM runs
        WHERE status = 'pending' AND claimed_by IS NULL AND ready AND lane = ${laneOfQueue(queue)} AND priority = ${rank}
          AND attempts < ${MAX_ATTEMPTS} AND ${MAY_BEGIN} AND (SELECT yes FROM allowed) AND schedule_uid <> ALL (${BEING_DELETED})
        ORDER BY due_at LIMIT ${limit} FOR UPDATE SKIP LOCKED) AS due
      LIMIT ${limit}${sql.join(before)})`;
  });
  return sql.join(parts, sql`, `);
}

function part(rank: number): SQL {
  return sql.raw(`due_${rank}`);
}

const allDue = sql.join(
  RANKS.map((rank) => sql`SELECT * FROM ${part(rank)}`),
  sql` UNION ALL `,
);

/** A claim whose worker went away before the answer. */
interface UnansweredClaim extends Pick<PulledRun, 'isFirst'> {
  run: Pick<Run, 'id' | 'attempts' | 'claimedBy'>;
}

/**
 * Takes back claims whose worker got no answer, as if they had not been made; but the attempt's number is used up, and a run keeps the
 * place of its limit.
 */
export async function takeBackIfStillLeased(db: Executor, claims: readonly UnansweredClaim[]): Promise<number> {
  const rows = await rowsOf<{ id: string }>(db)(sql`-- takeBackIfStillLeased
    WITH untold AS MATERIALIZED (
      SELECT r.id, c.is_first
      FROM unnest(${uuids(claims.map(({ run }) => run.id))},
        ${ints(claims.map(({ run }) => run.attempts))}, ${uuids(claims.map(({ run }) => run.claimedBy))},
        ${booleans(claims.map(({ isFirst }) => isFirst))}) AS c(id, attempt, claimed_by, is_first)
      JOIN runs r ON r.id = c.id AND ${anyUid(sql`c.id`)}
      WHERE r.status = 'running' AND r.attempts = c.attempt AND r.claimed_by = c.claimed_by
      ORDER BY r.id FOR UPDATE OF r SKIP LOCKED
    )
    UPDATE runs r SET status = ${sql.raw(stepTo('running', 'pending', 'takeBackIfStillLeased'))},
      claimed_by = NULL, claimed_at = NULL, handoff_started_at = NULL, handed_off_at = NULL, expires_at = NULL, lease_seconds = NULL,
      first_claimed_at = CASE WHEN NOT untold.is_first THEN r.first_claimed_at END,
      lateness_ms = CASE WHEN NOT untold.is_first THEN r.lateness_ms END, ${setNotBegun(sql`untold.is_first`)},
      updated_at = clock_timestamp()
    FROM untold WHERE r.id = untold.id
    RETURNING r.id`);
  return rows.length;
}

/** A run as a worker gets it. */
export interface PulledRun {
  run: Run;
  /** The outcomes of its dependencies, and of the run that it follows, as far as they are kept. */
  dependencies: Dependency[];
  /** What it follows, as far as that is kept. */
  parent: Parent | null;
  /** No worker had started it before. */
  isFirst: boolean;
}

/**
 * Each outcome has up to 4 KiB of a result: as many as one answer can carry, and one process can hold for it. Every
 * answer has at least one run.
 */
const MAX_DEPENDENCIES_SHOWN = 2_000;

/**
 * By id; without a run that cannot be read. What it depended on belongs to a run, whoever works on it; of its dependents a worker gets
 * those that its scope sees.
 */
async function readPulledRuns(
  tx: Transaction,
  claimed: readonly { id: string; is_first: boolean; scope: Scope }[],
): Promise<Map<string, PulledRun>> {
  const ids = claimed.map(({ id }) => id).filter(mayBeRunId);
  if (ids.length === 0) return new Map();
  // By their status they are looked for among open runs alone, and in no day of history.
  const filter = { ids, statuses: ['running' as const], limit: ids.length, scope: null };
  const runs = await listRuns(tx, filter, MAX_DEPENDENCIES_SHOWN);
  const dependents = await dependentsSeen(tx, runs, new Map(claimed.map(({ id, scope }) => [id, scope])));
  const found = await findOutcomes(tx, [...new Set(runs.flatMap(dependencyIds))]);
  const started = new Set(claimed.filter((row) => !row.is_first).map(({ id }) => id));
  return new Map(
    runs.map((run) => [
      run.id,
      {
        run: { ...run, dependents: dependents.get(run.id) ?? run.dependents },
        dependencies: dependencyIds(run)
          .flatMap((id) => found.get(id) ?? [])
          .filter(isParentRun)
          .map(dependencyOf),
        parent: run.parentId === null ? null : (found.get(run.parentId) ?? null),
        isFirst: !started.has(run.id),
      },
    ]),
  );
}

/** By run, of those that are worked on by callers with a scope. */
async function dependentsSeen(
  tx: Transaction,
  runs: readonly Run[],
  scopes: ReadonlyMap<string, Scope>,
): Promise<ReadonlyMap<string, string[]>> {
  const asked = runs.flatMap(({ id, dependents }) => {
    const scope = scopes.get(id) ?? null;
    return scope === null || dependents.length === 0 ? [] : [{ id, dependents, scope }];
  });
  const seen = new Map<string, string[]>();
  // A claim is asked for by few callers: one statement for each kind of them.
  for (const of of Map.groupBy(asked, ({ scope }) => scope.join(' ')).values()) {
    const all = of.flatMap(({ dependents }) => dependents);
    const among = await runsSeen(tx, all, of[0]?.scope ?? []);
    for (const { id, dependents } of of)
      seen.set(
        id,
        dependents.filter((dependent) => among.has(dependent)),
      );
  }
  return seen;
}

function dependencyIds({ parentId, dependsOn }: Run): string[] {
  return parentId === null ? [...dependsOn] : [parentId, ...dependsOn];
}
