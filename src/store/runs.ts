import { type SQL, and, asc, desc, eq, gte, inArray, lt, sql } from 'drizzle-orm';
import { unionAll } from 'drizzle-orm/pg-core';
import type { AttemptEntry } from '../core/attempt-log.ts';
import type { Instant } from '../core/instant.ts';
import { type Dependency, type Run, type RunStatus, type RunTrigger, scheduledForOf } from '../core/run.ts';
import { priorityOfRank } from '../core/schedule.ts';
import type { Executor } from './executor.ts';
import { attempts, runKeys, runs, scheduleVersions } from './schema.ts';

export interface RunFilter {
  /** Only runs of these schedules, by uid; none named: of all. */
  scheduleUids?: readonly string[] | undefined;
  statuses?: readonly RunStatus[] | undefined;
  triggers?: readonly RunTrigger[] | undefined;
  /** Only these. */
  ids?: readonly string[] | undefined;
  /** Inclusive, of scheduledFor. */
  from?: Instant | undefined;
  /** Exclusive. */
  to?: Instant | undefined;
  /** Only runs older than this one, in the order of the list. */
  before?: { scheduledFor: Instant; id: string } | undefined;
  limit: number;
}

export async function findRun(db: Executor, id: string): Promise<Run | null> {
  // The id carries scheduledFor, the first column of the key.
  const [row] = await select(db).where(and(eq(runs.scheduledFor, scheduledForOf(id)), eq(runs.id, id)));
  return row ? toRun(row) : null;
}

/** How a run ended, as another one is told that depends on it; null where it is not kept any more. */
export async function findDependency(db: Executor, id: string): Promise<Dependency | null> {
  const run = await findRun(db, id);
  return run && { runId: id, status: run.status, error: run.error, result: run.result };
}

/** Ids of the runs that a client's key stands for: one for each schedule it was used with. */
export async function runIdsOfKey(db: Executor, key: string): Promise<string[]> {
  const rows = await db.select({ runId: runKeys.runId }).from(runKeys).where(eq(runKeys.key, key));
  return rows.map((row) => row.runId);
}

/** Newest first: (scheduledFor, id) descending. */
export async function listRuns(db: Executor, filter: RunFilter): Promise<Run[]> {
  const newest = [desc(runs.scheduledFor), desc(runs.id)] as const;
  const page = (condition: SQL | undefined) =>
    db
      .select({ scheduledFor: runs.scheduledFor, id: runs.id })
      .from(runs)
      .where(condition)
      .orderBy(...newest)
      .limit(filter.limit);
  const where = conditions(filter);
  // Planned and other runs of a schedule stand in two indexes: a page of each, and the newest of both.
  const keys = filter.scheduleUids
    ? await unionAll(
        page(and(where, sql`${runs.trigger} IN ('schedule', 'catchUp', 'backfill')`)),
        page(and(where, sql`${runs.trigger} NOT IN ('schedule', 'catchUp', 'backfill')`)),
      )
        .orderBy(desc(runs.scheduledFor), desc(runs.id))
        .limit(filter.limit)
    : await page(where);
  if (keys.length === 0) return [];
  const rows = await select(db)
    .where(
      and(
        inArray(
          runs.scheduledFor,
          keys.map((key) => key.scheduledFor),
        ),
        inArray(
          runs.id,
          keys.map((key) => key.id),
        ),
      ),
    )
    .orderBy(...newest);
  return rows.map(toRun);
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

function conditions(filter: RunFilter): SQL | undefined {
  const { scheduleUids, statuses, triggers, ids, from, to, before } = filter;
  return and(
    scheduleUids && inArray(runs.scheduleUid, [...scheduleUids]),
    statuses && inArray(runs.status, [...statuses]),
    triggers && inArray(runs.trigger, [...triggers]),
    ids && and(inArray(runs.scheduledFor, ids.map(scheduledForOf)), inArray(runs.id, [...ids])),
    from === undefined ? undefined : gte(runs.scheduledFor, from),
    to === undefined ? undefined : lt(runs.scheduledFor, to),
    before &&
      sql`(${runs.scheduledFor}, ${runs.id}) < (${sql.param(before.scheduledFor, runs.scheduledFor)}, ${before.id}::uuid)`,
  );
}

type Row = Awaited<ReturnType<typeof select>>[number];

function toRun({ run, versionPayload }: Row): Run {
  const { priority, dueAt, resultStatusCode, resultBody, ownPayload } = run;
  return {
    ...run,
    priority: priorityOfRank(priority),
    nextAttemptAt: run.status === 'pending' ? dueAt : null,
    result: resultStatusCode === null ? null : { statusCode: resultStatusCode, body: resultBody ?? '' },
    payload: ownPayload ?? versionPayload,
  };
}
