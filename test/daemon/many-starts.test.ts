import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import postgres from 'postgres';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { eachTest, receiverOfTest, sqlOfTest } from '../support/of-test.ts';
import { type TestDatabase, createDatabase } from '../support/postgres/cluster.ts';
import { readyDaemon, startDaemon } from '../support/daemon.ts';
import { until } from '../support/until.ts';
import { LONG } from '../support/runner/long.ts';

let database: TestDatabase;
const receiver = eachTest(receiverOfTest);
let sql: postgres.Sql;

beforeEach(async () => {
  database = await createDatabase();
  sql = sqlOfTest(database.url);
});

afterEach(async () => {
  await database.drop();
});

it('six daemons start at once on an empty database: one migrates, all become ready', { tags: [LONG] }, async () => {
  const daemons = await Promise.all(Array.from({ length: 6 }, () => readyDaemon(database.url)));
  const messages = daemons.flatMap((daemon) => daemon.log().map(({ msg }) => msg));
  expect(messages.filter((msg) => msg === 'migrations applied')).toHaveLength(1);
  expect(messages.filter((msg) => msg === 'the schema is up to date')).toHaveLength(5);

  const folder = join(import.meta.dirname, '..', '..', 'drizzle');
  const migrations = (await readdir(folder)).filter((name) => /^\d{4}_.*\.sql$/.test(name));
  expect(await sql`SELECT count(*)::int, count(DISTINCT hash)::int AS distinct FROM firelock_migrations`).toEqual([
    { count: migrations.length, distinct: migrations.length },
  ]);
  const [first] = daemons;
  const answer = await first?.call('GET', '/api/v1/instances');
  const { items } = answer?.body as { items: { alive: boolean }[] };
  expect(items.map(({ alive }) => alive)).toEqual(Array.from({ length: 6 }, () => true));

  for (const daemon of daemons) daemon.signal('SIGTERM');
  expect(await Promise.all(daemons.map(({ exited }) => exited))).toEqual([0, 0, 0, 0, 0, 0]);
  for (const daemon of daemons) expect(daemon.log().filter(({ level }) => level >= 50)).toEqual([]);
});

it('a daemon that waits for another one to migrate says that it is not ready, and leaves at SIGTERM', async () => {
  await sql.begin(async (tx) => {
    await tx`SELECT pg_advisory_xact_lock(hashtext('firelock migrations ' || current_schema()))`;
    const waiting = await startDaemon({ DATABASE_URL: database.url, FIRELOCK_SHUTDOWN_SECONDS: '0' });
    await until(async () => {
      // A transaction goes on seeing the sessions that it saw first.
      await tx`SELECT pg_stat_clear_snapshot()`;
      const [row] =
        await tx`SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`;
      return row ?? null;
    });
    expect(await waiting.call('GET', '/readyz')).toMatchObject({ status: 503 });
    expect(await waiting.call('GET', '/api/v1/schedules')).toMatchObject({ status: 503 });
    waiting.signal('SIGTERM');
    expect(await waiting.exited).toBe(0);
    expect(await tx`SELECT FROM pg_class WHERE relname = 'schedules'`).toEqual([]);
  });
});

it(
  'a daemon that is killed with fire-locks keeps the others from them for no longer than the TTL',
  { tags: [LONG] },
  async () => {
    const ttl = { FIRELOCK_LOCK_TTL_SECONDS: '5' };
    const [dead, survivor] = await Promise.all([readyDaemon(database.url, ttl), readyDaemon(database.url, ttl)]);
    const [{ instanceId } = { instanceId: '' }] = dead.log().filter(({ msg }) => msg.startsWith('registered'));
    for (const id of ['locked', 'free']) {
      const schedule = { cron: '* * * * * *', enabled: false, target: { type: 'http', url: receiver.url } };
      expect((await survivor.call('PUT', `/api/v1/schedules/${id}`, schedule)).status).toBe(201);
    }
    dead.signal('SIGKILL');
    expect(await dead.exited).toBe('SIGKILL');
    // As it is left by a process that ends between the lock and the plan.
    await sql`UPDATE schedules SET enabled = true, next_occurrence_at = date_trunc('second', now()) + interval '1 s',
    next_fire_at = date_trunc('second', now()) + interval '1 s'`;
    await sql`UPDATE schedules SET locked_by = ${String(instanceId)}, locked_at = now() WHERE id = 'locked'`;

    const firesOf = (id: string) => receiver.arrivals.filter(({ body }) => body.scheduleId === id);
    await until(() => firesOf('free').length >= 2 || null);
    expect(firesOf('locked')).toEqual([]);
    await until(() => firesOf('locked').length >= 7 || null);
    const times = firesOf('locked').map(({ body }) => Date.parse(body.scheduledFor));
    const inOrder = times.sort((a, b) => a - b);
    for (const [index, at] of inOrder.slice(1).entries()) expect(at - (inOrder[index] ?? NaN)).toBe(1000);
    expect(await survivor.logged(/^took over fire-locks/)).toMatchObject({ level: 40, count: 1 });
    expect(firesOf('locked').every(({ body }) => body.trigger === 'schedule')).toBe(true);
  },
);
