import type { MigrationWait } from '../../src/core/own-resources.ts';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import postgres from 'postgres';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { migrate } from '../../src/postgres/migrate.ts';
import { shortlyOn } from '../../src/postgres/migrations/locks.ts';
import { rowsOf } from '../../src/postgres/sql/rows.ts';
import { OUTSIDE, readMigrations } from '../../src/postgres/migrations/read-migrations.ts';
import { misplacedStatements } from '../../scripts/support/misplaced-statements.ts';
import { storeOfTest } from '../support/of-test.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { type Store, createInstance } from '../support/pipeline.ts';
import { addMigration } from '../support/postgres/add-migration.ts';
import { ATTACK } from '../support/runner/attack.ts';
import { until } from '../support/until.ts';

const OURS = join(import.meta.dirname, '..', '..', 'drizzle');
const INDEX = 'CREATE INDEX CONCURRENTLY "later" ON "TABLE" USING btree ("created_at");';

let store: Store;
let folder: string;
let waits: MigrationWait[];
const clients: postgres.Sql[] = [];

beforeEach(async () => {
  store = await storeOfTest();
  folder = mkdtempSync(join(tmpdir(), 'firelock-migrations-'));
  cpSync(OURS, folder, { recursive: true });
  waits = [];
});
afterEach(async () => {
  for (const client of clients.splice(0)) await client.end({ timeout: 0 });
  rmSync(folder, { recursive: true });
});

/** The next version has one more migration. */
const release = (name: string, ...lines: string[]) => addMigration(folder, name, ...lines);

const start = (signal?: AbortSignal) =>
  migrate(store.url, {
    folder,
    firstWaitMs: 20,
    onWait: (wait) => void waits.push(wait),
    ...(signal ? { signal } : {}),
  });

/** A session whose transaction has done that, and stays open. */
async function openTransaction(...statements: string[]): Promise<postgres.Sql> {
  const client = postgres(store.url, { max: 1, onnotice: () => undefined });
  clients.push(client);
  for (const statement of ['BEGIN', ...statements]) await client.unsafe(statement);
  return client;
}

const INSERT = `INSERT INTO runs (id, scheduled_for, schedule_uid, schedule_version, schedule_id, trigger, status, lane, priority, due_at,
  ready, attempts, created_at, updated_at)
  VALUES (gen_random_uuid(), now(), gen_random_uuid(), 1, '', 'api', 'pending', 'http http://x', 1, now(), false, 0, now(), now())`;

interface Index {
  table: string;
  valid: boolean;
}
const indexes = () =>
  store.rows<Index>(sql`SELECT c.relname AS table, x.indisvalid AS valid FROM pg_class i JOIN pg_index x ON x.indexrelid = i.oid
    JOIN pg_class c ON c.oid = x.indrelid WHERE i.relname ~ 'later$' ORDER BY 1`);
const hasColumn = async () =>
  (await store.rows(sql`SELECT FROM information_schema.columns WHERE column_name = 'later'`)).length > 0;

describe('a migration behind a long reader', () => {
  let receiver: Receiver;
  beforeEach(async () => void (receiver = await startReceiver()));
  afterEach(() => receiver.close());

  test(
    'lets the version before fire, send and settle, as often as it has to wait, and is applied when the reader ends',
    { tags: [ATTACK] },
    async () => {
      const before = await createInstance(store);
      await before.start();
      await before.put('steady', { url: receiver.url });
      release('9000_later', 'ALTER TABLE "runs" ADD COLUMN "later" integer;');
      const reader = await openTransaction('SELECT count(*) FROM runs', 'SELECT count(*) FROM history');
      const migrated = start();
      let fired = 0;
      // A statement that waits behind the migration for longer than its limit would throw here.
      while (waits.length < 2) {
        await before.fire('steady');
        fired += 1;
      }
      await until(async () => ((await store.rows(sql`SELECT FROM history`)).length === fired ? true : null));
      expect(await hasColumn()).toBe(false);
      expect(before.events.filter(({ type }) => type === 'loopFailed')).toEqual([]);
      expect(waits[0]).toMatchObject({
        migration: '9000_later',
        statement: 'ALTER TABLE "runs" ADD COLUMN "later" integer;',
        tries: 1,
        retryInMs: 20,
        statementTimeout: null,
        oldest: { pid: (await reader.unsafe('SELECT pg_backend_pid() AS pid'))[0]?.['pid'] as number },
      });
      expect(waits[1]).toMatchObject({ tries: 2, retryInMs: 40 });
      await reader.unsafe('COMMIT');
      expect(await migrated).toBe(1);
      expect(await hasColumn()).toBe(true);
      await before.stop();
    },
  );

  test('ends its wait when the process is to stop', async () => {
    release('9000_later', 'ALTER TABLE "runs" ADD COLUMN "later" integer;');
    await openTransaction('SELECT count(*) FROM runs');
    const stopped = new AbortController();
    const migrated = start(stopped.signal);
    await until(() => (waits.length > 0 ? true : null));
    stopped.abort();
    await expect(migrated).rejects.toThrow(/abort/);
  });
});

describe('a database with a short limit of its own for statements', () => {
  beforeEach(async () => {
    const name = new URL(store.url).pathname.slice(1);
    await store.rows(sql.raw(`ALTER DATABASE ${name} SET statement_timeout = '300ms'`));
  });

  test('cuts off no migration that is a transaction', async () => {
    release('9000_slow', 'SELECT pg_sleep(0.5);');
    expect(await start()).toBe(1);
    expect(waits).toEqual([]);
  });

  test('is named where it cuts off one that runs outside of a transaction', async () => {
    release('9000_slow', OUTSIDE, 'SELECT pg_sleep(0.5);');
    const stopped = new AbortController();
    const migrated = start(stopped.signal);
    await until(() => (waits.length > 0 ? true : null));
    stopped.abort();
    await expect(migrated).rejects.toThrow(/abort/);
    expect(waits[0]).toMatchObject({ migration: '9000_slow', statementTimeout: '300ms' });
  });
});

describe('an index on a full table', () => {
  test('is built outside of a transaction by one of many instances, beside a reader and writers, on each day of history', async () => {
    for (const day of [1, 2])
      await store.rows(sql`SELECT firelock_create_day('history', (now() + make_interval(days => ${day}))::date)`);
    release(
      '9000_runs',
      OUTSIDE,
      `${INDEX.replace('TABLE', 'runs')}--> statement-breakpoint`,
      'DROP INDEX CONCURRENTLY IF EXISTS "none";',
    );
    release('9001_history', OUTSIDE, INDEX.replace('later', 'day_later').replace('TABLE', 'history'));
    const reader = await openTransaction('SELECT count(*) FROM runs', 'SELECT count(*) FROM history');
    const applied = await Promise.all(Array.from({ length: 4 }, () => start()));
    expect(applied.filter((count) => count > 0)).toEqual([2]);
    expect(waits).toEqual([]);
    const built = await indexes();
    expect(built.map(({ table }) => table)).toEqual(expect.arrayContaining(['history', 'history_other', 'runs']));
    expect(built.length).toBeGreaterThanOrEqual(5);
    expect(built.every(({ valid }) => valid)).toBe(true);
    await reader.unsafe('COMMIT');
    await store.rows(sql`SELECT firelock_create_day('history', (now() + interval '9 days')::date)`);
    const [later] = await store.rows<{ count: number }>(
      sql`SELECT count(*)::int FROM pg_indexes WHERE tablename ~ '^history_2' AND indexdef LIKE '%btree (created_at)'`,
    );
    expect(later?.count).toBe(built.length - 3 + 1);
  });

  test.each(['runs', 'history_other'])('that a crash left behind on %s is built anew', async (table) => {
    const name = table === 'runs' ? 'later' : 'history_other_later';
    const writer = await openTransaction(table === 'runs' ? INSERT : `LOCK TABLE history_other IN ROW EXCLUSIVE MODE`);
    const builder = postgres(store.url, { max: 1, onnotice: () => undefined });
    clients.push(builder);
    const broken = builder
      .unsafe(`CREATE INDEX CONCURRENTLY "${name}" ON "${table}" (created_at)`)
      .catch(() => 'broken off');
    const pid = await until(async () => {
      const [found] = await store.rows<{ pid: number }>(
        sql`SELECT pid FROM pg_stat_activity WHERE query LIKE 'CREATE INDEX CONC%' AND wait_event_type = 'Lock'`,
      );
      return found?.pid ?? null;
    });
    await store.rows(sql`SELECT pg_cancel_backend(${pid})`);
    expect(await broken).toBe('broken off');
    expect(await indexes()).toEqual([{ table, valid: false }]);
    await writer.unsafe('ROLLBACK');
    release('9000_later', OUTSIDE, INDEX.replace('TABLE', table === 'runs' ? 'runs' : 'history'));
    expect(await start()).toBe(1);
    const built = await indexes();
    expect(built).toContainEqual({ table, valid: true });
    expect(built.every(({ valid }) => valid)).toBe(true);
  });

  test('is built by another instance where the one that built it lost its lock', async () => {
    release('9000_later', OUTSIDE, INDEX.replace('TABLE', 'runs'));
    const writer = await openTransaction(INSERT);
    const first = start().catch((error: unknown) => error);
    const holders = sql`SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND pid IN (SELECT pid FROM pg_stat_activity
      WHERE datname = current_database())`;
    await until(async () =>
      (
        await store.rows(
          sql`SELECT FROM pg_stat_activity WHERE query LIKE 'CREATE INDEX CONC%' AND wait_event_type = 'Lock'`,
        )
      ).length > 0
        ? true
        : null,
    );
    await store.rows(sql`SELECT pg_terminate_backend(pid) FROM (${holders}) AS holder`);
    // The build goes on without its lock, and ends beside the second instance.
    const second = start();
    await until(async () => ((await store.rows(holders)).length > 0 ? true : null));
    await writer.unsafe('COMMIT');
    await second;
    await first;
    expect(await indexes()).toEqual([{ table: 'runs', valid: true }]);
  });
});

describe('a migration outside of a transaction', () => {
  const CHECK = 'ALTER TABLE "runs" ADD CONSTRAINT "later" CHECK (attempts < 1000000) NOT VALID;';
  const VALIDATE = 'ALTER TABLE "runs" VALIDATE CONSTRAINT "later";';

  test('makes a constraint count for the rows before it, beside their writers', async () => {
    release('9000_check', CHECK);
    release('9001_validate', OUTSIDE, VALIDATE);
    await openTransaction(INSERT);
    const migrated = start();
    await until(() => (waits.length > 0 ? true : null));
    expect(waits[0]).toMatchObject({ migration: '9000_check' });
    for (const client of clients) await client.unsafe('COMMIT');
    expect(await migrated).toBe(2);
    expect(await store.rows(sql`SELECT convalidated FROM pg_constraint WHERE conname = 'later'`)).toEqual([
      { convalidated: true },
    ]);
  });

  test('has nothing that may not be repeated, and one inside nothing that PostgreSQL refuses there', () => {
    const DROP = 'DROP INDEX CONCURRENTLY IF EXISTS "none";';
    const repeatable = [INDEX, INDEX.replace('INDEX', 'UNIQUE INDEX'), DROP, VALIDATE];
    const between = '--> statement-breakpoint\n';
    release('9000_good', OUTSIDE, repeatable.join(between));
    release('9001_good', CHECK);
    expect(misplacedStatements(readMigrations(folder))).toEqual([]);
    release('9002_outside', OUTSIDE, [CHECK, DROP, INDEX.replace('CONCURRENTLY ', '')].join(between));
    release('9003_inside', [CHECK, INDEX].join(between));
    expect(misplacedStatements(readMigrations(folder))).toEqual([
      `9002_outside: ${CHECK}`,
      `9002_outside: ${INDEX.replace('CONCURRENTLY ', '')}`,
      `9003_inside: ${INDEX}`,
    ]);
  });
});

test('beside a VACUUM that somebody asked for, which does not give way, a step waits no longer than beside any other transaction', async () => {
  await store.rows(sql`CREATE TABLE dusty AS SELECT n, repeat('x', 500) AS text FROM generate_series(1, 20000) AS n`);
  await store.rows(sql`ALTER TABLE dusty ADD PRIMARY KEY (n)`);
  await store.rows(sql`DELETE FROM dusty WHERE n % 2 = 0`);
  const client = postgres(store.url, { max: 1, onnotice: () => undefined });
  clients.push(client);
  await client.unsafe('SET vacuum_cost_delay = 100');
  await client.unsafe('SET vacuum_cost_limit = 1');
  const vacuum = client.unsafe('VACUUM dusty').catch(() => undefined);
  const progress = () => store.rows(sql`SELECT FROM pg_stat_progress_vacuum WHERE datname = current_database()`);
  await until(async () => ((await progress()).length > 0 ? true : null));
  const limit = await shortlyOn(store.database)((tx) =>
    rowsOf<{ limit: string }>(tx)(sql`SELECT current_setting('lock_timeout') AS limit`),
  );
  expect(limit).toEqual([{ limit: '50ms' }]);
  expect(await progress()).toHaveLength(1);
  await store.rows(sql`SELECT pg_cancel_backend(pid) FROM pg_stat_progress_vacuum WHERE datname = current_database()`);
  await vacuum;
});
