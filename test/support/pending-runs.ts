import { type SQL, sql } from 'drizzle-orm';
import postgres from 'postgres';
import { type Database, STATEMENT_LIMIT_MS } from '../../src/postgres/database.ts';
import { QueryTimeout } from '../../src/postgres/errors.ts';
import type { Transaction } from '../../src/postgres/executor.ts';
import { claimReadyRuns } from '../../src/store/runs/claims/claims.ts';
import type { Store } from './pipeline.ts';
import { until } from './until.ts';

interface PendingRuns {
  /** Null: the one that the schedule has. */
  version?: number | null;
  count?: number;
  lateBySeconds?: number;
  /** Who claims them, for the first attempt; null: nobody, as an instance without room leaves them. */
  claimedBy?: string | null;
}

/** Runs of a schedule that are due, as other instances leave them. */
export async function leaveRuns(store: Store, scheduleId: string, given: PendingRuns = {}): Promise<void> {
  const { count = 1, lateBySeconds = 1, claimedBy = null, version = null } = given;
  const attempts = claimedBy === null ? 0 : 1;
  await store.rows(sql`INSERT INTO runs (id, scheduled_for, schedule_uid, schedule_version, schedule_id, trigger, status,
      lane, priority, due_at, ready, attempts, claimed_by, claimed_at, created_at, updated_at)
    SELECT ${runIdAt(sql`due`)}, due, uid, coalesce(${version}::int, version), id, 'schedule', 'pending', lane, priority, due, true, ${attempts},
      ${claimedBy}::uuid, CASE WHEN ${claimedBy}::uuid IS NOT NULL THEN due END, due, due
    FROM schedules, LATERAL (SELECT date_trunc('milliseconds', clock_timestamp())
      - make_interval(secs => ${lateBySeconds} + n) AS due FROM generate_series(1, ${count}) n) d
    WHERE schedules.id = ${scheduleId}`);
}

/** A random id of that instant, as all ids begin with their scheduledFor. */
export function runIdAt(at: SQL): SQL {
  return sql`(lpad(to_hex((extract(epoch FROM ${at}) * 1000)::bigint), 12, '0') || '7'
    || substr(replace(gen_random_uuid()::text, '-', ''), 14))::uuid`;
}

interface PendingRunRow {
  id: string;
  schedule_id: string;
  scheduled_for: string;
  due_at: string;
  status: string;
  reason: string | null;
  attempts: number;
  failures: number;
  recoveries: number;
  lookups: number;
  claimed_by: string | null;
  lost_at: string | null;
  in_doubt_until: string | null;
  /** bigint: a string on the wire. */
  lateness_ms: string | null;
}

/** The runs of a schedule, or all; the latest first. */
export function runsOf(store: Store, scheduleId?: string): Promise<PendingRunRow[]> {
  const all = scheduleId === undefined;
  return store.rows<PendingRunRow>(sql`SELECT * FROM all_runs WHERE ${all} OR schedule_id = ${scheduleId ?? ''}
    ORDER BY scheduled_for DESC, id`);
}

/** The runs of a schedule, or all, once none of them is pending. */
export function endedRunsOf(store: Store, scheduleId?: string): Promise<PendingRunRow[]> {
  return until(async () => {
    const runs = await runsOf(store, scheduleId);
    return runs.length > 0 && runs.every(({ status }) => status !== 'pending') ? runs : null;
  });
}

/** Keeps the runs of a schedule locked, as somebody does who looks at them in a transaction; answers how to let go of them. */
export async function lockRuns({ url }: Store, scheduleId: string): Promise<() => Promise<void>> {
  const client = postgres(url, { max: 1, onnotice: () => undefined });
  const locked = Promise.withResolvers<undefined>();
  const done = Promise.withResolvers<undefined>();
  const transaction = client.begin(async (tx) => {
    await tx`SELECT FROM runs WHERE schedule_id = ${scheduleId} FOR UPDATE`;
    locked.resolve(undefined);
    await done.promise;
  });
  await locked.promise;
  return async () => {
    done.resolve(undefined);
    await transaction;
    await client.end();
  };
}

/** A transaction that has done its work and is not committed yet; answers how to let it be. */
export async function heldTransaction<T>(
  database: Database,
  work: (tx: Transaction) => Promise<T>,
): Promise<() => Promise<T>> {
  const worked = Promise.withResolvers<undefined>();
  const allowed = Promise.withResolvers<undefined>();
  const committed = database.transaction(async (tx) => {
    const result = await work(tx);
    worked.resolve(undefined);
    await allowed.promise;
    return result;
  });
  await worked.promise;
  return () => {
    allowed.resolve(undefined);
    return committed;
  };
}

/** Claims so many of the runs that are ready, as an instance with that much room does. */
export function claimRuns({ database }: Store, instanceId: string, count: number) {
  const room = { limit: count, freeByLane: new Map<string, number>(), freePerLane: count };
  return database.run((db) => claimReadyRuns(db, { instanceId, ...room, targetTypes: ['http'] }));
}

interface LostAnswer {
  database: Database;
  /** Resolves once the work is done, and committed. */
  committed: Promise<void>;
  /** Fails the work as if its answer had not come in time; until then its caller waits. */
  lose: () => void;
}

/** A database that does the first piece of work that calls the named function, and loses its answer. */
export function loseAnswerOf(database: Database, called: string): LostAnswer {
  const committed = Promise.withResolvers<undefined>();
  const lost = Promise.withResolvers<never>();
  // It is awaited only once the work is done.
  lost.promise.catch(() => undefined);
  let isFirst = true;
  async function lossy<T>(work: { toString(): string }, result: T): Promise<T> {
    if (!isFirst || !work.toString().includes(called)) return result;
    isFirst = false;
    committed.resolve(undefined);
    return await lost.promise;
  }
  return {
    database: {
      ...database,
      run: async (work, limitMs) => lossy(work, await database.run(work, limitMs)),
      transaction: async (work, limitMs) => lossy(work, await database.transaction(work, limitMs)),
    },
    committed: committed.promise,
    lose: () => {
      lost.reject(new QueryTimeout(STATEMENT_LIMIT_MS));
    },
  };
}
