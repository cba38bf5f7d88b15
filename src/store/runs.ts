import { and, asc, desc, eq, sql } from 'drizzle-orm';
import type { AttemptEntry } from '../core/attempt-log.ts';
import { type Dependency, type Run, scheduledForOf } from '../core/run.ts';
import { type Target, priorityOfRank } from '../core/schedule.ts';
import { instants, uuids } from './arrays.ts';
import { runsByKey } from './by-key.ts';
import type { Executor } from './executor.ts';
import { loadHandoffs, versionKey } from './handoffs.ts';
import { queueOfLane } from './lanes.ts';
import { rowsOf, scheduleIdOf } from './rows.ts';
import { type RunFilter, pageOfRuns } from './run-pages.ts';
import { attempts, runKeys, runs, scheduleVersions } from './schema.ts';

export async function findRun(db: Executor, id: string): Promise<Run | null> {
  // The id carries scheduledFor, the first column of the key.
  const rows = await select(db).where(and(eq(runs.scheduledFor, scheduledForOf(id)), eq(runs.id, id)));
  const [run] = await toRuns(db, rows, MOST_SHOWN);
  return run ?? null;
}

/** What the run's attempts go to; null where its definition is not there, or cannot be read. */
export async function findTarget(
  db: Executor,
  { id, scheduledFor }: Pick<Run, 'id' | 'scheduledFor'>,
): Promise<Target | null> {
  const [row] = await db
    .select({ scheduleUid: runs.scheduleUid, scheduleVersion: runs.scheduleVersion })
    .from(runs)
    .where(and(eq(runs.scheduledFor, scheduledFor), eq(runs.id, id)));
  const handoff = row && (await loadHandoffs(db, [row])).get(versionKey(row));
  return handoff?.target ?? null;
}

/** How those ended that a run depends on, as its target is told: its parent, or what it waited for, as listed. Without those not kept any more. */
export async function findDependencies(
  db: Executor,
  run: { id: string; parentRunId: string | null; hasDependencies: boolean },
): Promise<Dependency[]> {
  const { parentRunId } = run;
  const ids = parentRunId === null ? [] : [parentRunId];
  if (run.hasDependencies)
    ids.push(...((await edgesOf(db, [run.id], 'runId', MOST_SHOWN)).get(run.id) ?? []));
  const found = await findOutcomes(db, ids);
  return ids.flatMap((id) => found.get(id) ?? []);
}

/** How these runs stand, as those are told that depend on them; without those not kept any more. */
export async function findOutcomes(db: Executor, ids: readonly string[]): Promise<Map<string, Dependency>> {
  if (ids.length === 0) return new Map();
  const times = ids.map(scheduledForOf);
  const rows = await rowsOf<
    Pick<Dependency, 'status' | 'error'> & { id: string; status_code: number | null; body: string | null }
  >(
    db,
    sql`SELECT r.id, r.status, r.error, r.result_status_code AS status_code, r.result_body AS body
    FROM unnest(${uuids(ids)}, ${instants(times)}) AS d(id, scheduled_for)
    JOIN runs r ON ${runsByKey(sql`r`, sql`d`, times)}`,
  );
  return new Map(
    rows.map(({ id, status, error, status_code: resultStatusCode, body: resultBody }) => [
      id,
      { runId: id, status, error, result: resultOf({ resultStatusCode, resultBody }) },
    ]),
  );
}

/** Ids of the runs that a client's key stands for: one for each schedule it was used with. */
export async function runIdsOfKey(db: Executor, key: string): Promise<string[]> {
  const rows = await db.select({ runId: runKeys.runId }).from(runKeys).where(eq(runKeys.key, key));
  return rows.map((row) => row.runId);
}

/** Newest first. Of each run, so many of those it depends on, and of those that depend on it. */
export async function listRuns(
  db: Executor,
  filter: RunFilter,
  mostEdges = MOST_SHOWN_IN_LIST,
): Promise<Run[]> {
  const keys = await pageOfRuns(db, filter);
  if (keys.length === 0) return [];
  const times = keys.map((key) => key.scheduledFor);
  const page = sql`unnest(${uuids(keys.map((key) => key.id))}, ${instants(times)}) AS page(id, scheduled_for)`;
  const rows = await select(db)
    .innerJoin(page, runsByKey(sql`runs`, sql`page`, times))
    .orderBy(desc(runs.scheduledFor), desc(runs.id));
  return toRuns(db, rows, mostEdges);
}

export async function recordedAttempts(
  db: Executor,
  run: Pick<Run, 'id' | 'scheduledFor'>,
): Promise<AttemptEntry[]> {
  return db
    .select({
      attempt: attempts.attempt,
      instanceId: attempts.instanceId,
      startedAt: attempts.startedAt,
      finishedAt: attempts.finishedAt,
      outcome: attempts.outcome,
      statusCode: attempts.statusCode,
      error: attempts.error,
      recovery: attempts.recovery,
      lookup: attempts.lookup,
    })
    .from(attempts)
    .where(and(eq(attempts.scheduledFor, run.scheduledFor), eq(attempts.runId, run.id)))
    .orderBy(asc(attempts.attempt));
}

function select(db: Executor) {
  return db
    .select({ run: runs, versionPayload: scheduleVersions.payload })
    .from(runs)
    .leftJoin(
      scheduleVersions,
      and(
        eq(scheduleVersions.scheduleUid, runs.scheduleUid),
        eq(scheduleVersions.version, runs.scheduleVersion),
      ),
    )
    .$dynamic();
}

type Row = Awaited<ReturnType<typeof select>>[number];

async function toRuns(db: Executor, rows: readonly Row[], most: number): Promise<Run[]> {
  const waited = rows.filter(({ run }) => run.openDependencies !== null).map(({ run }) => run.id);
  const waitedFor = rows.filter(({ run }) => run.hasDependents).map(({ run }) => run.id);
  const dependsOn = await edgesOf(db, waited, 'runId', most);
  const dependents = await edgesOf(db, waitedFor, 'dependsOn', most);
  return rows.map((row) => toRun(row, dependsOn, dependents));
}

/** Of one run by itself: all that it can depend on. */
const MOST_SHOWN = 1000;
/** Of one run in a list, which may have hundreds. */
const MOST_SHOWN_IN_LIST = 100;

/** The ids at the other ends of its edges, of each run: those it depends on as listed; those that depend on it may be any number. */
async function edgesOf(
  db: Executor,
  ids: readonly string[],
  end: 'runId' | 'dependsOn',
  most: number,
): Promise<ReadonlyMap<string, string[]>> {
  if (ids.length === 0) return new Map();
  const edges =
    end === 'runId'
      ? sql`SELECT depends_on AS other, position FROM run_dependencies WHERE run_id = i.id ORDER BY position LIMIT ${most}`
      : sql`SELECT run_id AS other FROM run_dependencies WHERE depends_on = i.id ORDER BY run_id LIMIT ${most}`;
  const rows = await rowsOf<{ id: string; others: string }>(
    db,
    sql`SELECT i.id, others.list AS others FROM unnest(${uuids(ids)}) AS i(id), LATERAL (
      SELECT string_agg(other::text, ',') AS list FROM (${edges}) AS e) AS others WHERE others.list IS NOT NULL`,
  );
  return new Map(rows.map(({ id, others }) => [id, others.split(',')]));
}

function toRun(
  { run, versionPayload }: Row,
  dependsOn: ReadonlyMap<string, string[]>,
  dependents: ReadonlyMap<string, string[]>,
): Run {
  const { priority, dueAt, ownPayload } = run;
  const scheduleId = scheduleIdOf(run.scheduleId);
  return {
    ...run,
    scheduleId,
    scheduleVersion: scheduleId === null ? null : run.scheduleVersion,
    priority: priorityOfRank(priority),
    nextAttemptAt: run.status === 'pending' ? dueAt : null,
    result: resultOf(run),
    payload: ownPayload ?? versionPayload,
    dependsOn: dependsOn.get(run.id) ?? [],
    dependents: dependents.get(run.id) ?? [],
    queue: queueOfLane(run.lane),
  };
}

function resultOf({
  resultStatusCode,
  resultBody,
}: Pick<Row['run'], 'resultStatusCode' | 'resultBody'>): Run['result'] {
  if (resultStatusCode === null && resultBody === null) return null;
  return { statusCode: resultStatusCode, body: resultBody ?? '' };
}
