import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import postgres from 'postgres';
import { DAY_MS, dayOf, isoInstant } from '../../src/core/instant.ts';
import { randomRunId } from '../../src/core/runs/run.ts';
import { createPartition, listPartitions } from '../../src/postgres/history-partitions.ts';
import type { Store } from './pipeline.ts';

/** The day so many days ago; negative: a coming one. */
export function dayAgo(days: number): number {
  return dayOf(Date.now()) - days * DAY_MS;
}

/** The name of the partition of a day. */
export function partitionOf(day: number): string {
  return `history_${isoInstant(day).slice(0, 10).replaceAll('-', '')}`;
}

/** The names of all partitions but the default one, the oldest day first. */
export async function partitions({ database }: Pick<Store, 'database'>): Promise<string[]> {
  return (await database.run(listPartitions)).map(({ table }) => table);
}

/** Gives past days partitions, as they have them on a database that has worked since. */
export async function makePartitions({ database }: Store, days: readonly number[]): Promise<void> {
  for (const day of days) await database.run((db) => createPartition(db, day));
}

/** Takes all partitions but the default one away, as if this version had been off for longer than they reach. */
export async function dropAllPartitions(store: Store): Promise<void> {
  const names = await partitions(store);
  if (names.length > 0) await store.rows(sql.raw(`DROP TABLE ${names.join(', ')}`));
}

interface GivenEnd {
  endedAt: number;
  /** When it ended, unless said. */
  scheduledFor?: number;
  status?: string;
  trigger?: string;
  scheduleUid?: string;
  scheduleId?: string;
  key?: string;
}

/** Runs that ended then, with what a run may have, as they stand in history; their ids. */
export async function endedRuns(store: Store, given: GivenEnd, count = 1): Promise<string[]> {
  const { endedAt, scheduledFor = endedAt, status = 'succeeded', trigger = 'schedule' } = given;
  const { scheduleUid = randomUUID(), scheduleId = 's', key = null } = given;
  const [at, ended] = [isoInstant(scheduledFor), isoInstant(endedAt)];
  const rows = await store.rows<{ id: string }>(sql`INSERT INTO history (id, scheduled_for, schedule_uid,
      schedule_version, schedule_id, trigger, status, lane, priority, due_at, attempts, error, key, own_payload, attempt_log,
      created_at, updated_at, finished_at, ended_at)
    SELECT overlay(gen_random_uuid()::text PLACING ${randomRunId(scheduledFor).slice(0, 14)} FROM 1 FOR 14)::uuid,
      ${at}::timestamptz, ${scheduleUid}::uuid, 1, ${scheduleId}, ${trigger}, ${status}, 'http http://127.0.0.1', 2,
      ${at}::timestamptz, 2, '{"kind":"http","message":"m"}', ${key}, '{"n":1.0}',
      '[{"attempt":1,"outcome":"transient"}]', ${at}::timestamptz, ${ended}::timestamptz, ${ended}::timestamptz,
      ${ended}::timestamptz
    FROM generate_series(1, ${count}::int) RETURNING id`);
  return rows.map(({ id }) => id);
}

/** One such run; its id. */
export async function endedRun(store: Store, given: GivenEnd): Promise<string> {
  const [id] = await endedRuns(store, given);
  if (id === undefined) throw new Error('no run was inserted');
  return id;
}

/** The table of history in which a run stands. */
export async function tableOf(store: Store, id: string): Promise<string | null> {
  const [row] = await store.rows<{ name: string }>(
    sql`SELECT tableoid::regclass::text AS name FROM history WHERE id = ${id}`,
  );
  return row?.name ?? null;
}

/** Ids of all ended runs, in order. */
export async function endedIds(store: Store): Promise<string[]> {
  return (await store.rows<{ id: string }>(sql`SELECT id FROM history ORDER BY id`)).map(({ id }) => id);
}

/** A transaction that has read history stays open meanwhile: no partition can be dropped, and none can be made. */
export async function whileHistoryIsRead<T>({ url }: Store, work: () => Promise<T>): Promise<T> {
  const client = postgres(url, { max: 1, onnotice: () => undefined });
  const reading = Promise.withResolvers<undefined>();
  const done = Promise.withResolvers<undefined>();
  const transaction = client.begin(async (tx) => {
    await tx`SELECT count(*) FROM history`;
    reading.resolve(undefined);
    await done.promise;
  });
  await reading.promise;
  try {
    return await work();
  } finally {
    done.resolve(undefined);
    await transaction;
    await client.end();
  }
}
