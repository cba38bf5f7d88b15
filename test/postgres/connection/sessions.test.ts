import { sql } from 'drizzle-orm';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { listen } from '../../../src/postgres/connection/lasting-connection.ts';
import { type Database, openDatabase } from '../../../src/postgres/database.ts';
import type { Executor } from '../../../src/postgres/executor.ts';
import { queryPrepared, rowsOf } from '../../../src/postgres/sql/rows.ts';
import { type TestDatabase, createDatabase } from '../../support/postgres/cluster.ts';
import { countNow, needsCounting } from '../../support/postgres/counted.ts';
import { THROUGH_POOLER, notThroughPooler } from '../../support/postgres/pooler.ts';
import { until } from '../../support/until.ts';

let created: TestDatabase;
let database: Database;

beforeEach(async () => {
  created = await createDatabase();
  database = openDatabase(created.url, 1);
});

afterEach(async () => {
  await database.close();
  await created.drop();
});

const increment = (db: Executor, n: number) => queryPrepared<{ n: number }>(db)(sql`SELECT ${n}::int + 1 AS n`);
const namesIn = (db: Executor) =>
  rowsOf<{ custom: number; generic: number }>(db)(
    sql`SELECT custom_plans::int AS custom, generic_plans::int AS generic FROM pg_prepared_statements`,
  );

async function times(count: number): Promise<void> {
  for (let n = 1; n <= count; n += 1) {
    expect(await database.run((db) => increment(db, n))).toEqual([{ n: n + 1 }]);
  }
}

const loseNames = () => database.run((db) => db.execute(sql`DEALLOCATE ALL`));

describe('a repeated statement, in a session of its own', () => {
  beforeEach((context) => notThroughPooler(context, 'sessions are not ours there'));

  it('is prepared by name once it has come before', async () => {
    await times(1);
    expect(await database.run(namesIn)).toHaveLength(0);
    await times(12);
    expect(await database.run(namesIn)).toEqual([{ custom: 12, generic: 0 }]);
  });

  it('is answered all the same if its name has gone', async () => {
    await times(3);
    await loseNames();
    await times(3);
    expect(await database.run(namesIn)).toHaveLength(1);
  });

  it('has no name in a transaction, which would fail with it', async () => {
    await times(3);
    await loseNames();
    expect(await database.transaction((tx) => increment(tx, 1))).toEqual([{ n: 2 }]);
    expect(await database.run(namesIn)).toHaveLength(0);
  });

  it('is prepared anew if a migration has changed its result', async () => {
    await database.run((db) => db.execute(sql`CREATE TABLE t AS SELECT 1::int AS n`));
    const read = (db: Executor) => queryPrepared(db)(sql`SELECT * FROM t WHERE n > ${0}::int`);
    for (let i = 0; i < 3; i += 1) expect(await database.run(read)).toEqual([{ n: 1 }]);
    await database.run((db) => db.execute(sql`ALTER TABLE t ADD COLUMN m int`));
    for (let i = 0; i < 3; i += 1) expect(await database.run(read)).toEqual([{ n: 1, m: null }]);
  });

  it('is planned for its table as it is, though that was empty a moment before', async (context) => {
    await needsCounting(context, database);
    for (const statement of [
      sql`CREATE TABLE t (n int PRIMARY KEY) WITH (autovacuum_enabled = false)`,
      sql`INSERT INTO t VALUES (0)`,
      sql`ANALYZE t`,
    ])
      await database.run((db) => db.execute(statement));
    const read = async (count: number) => {
      for (let i = 0; i < count; i += 1)
        await database.run((db) => queryPrepared(db)(sql`SELECT FROM t WHERE n = ${i}::int`));
    };
    const scans = async () => {
      await countNow(database);
      const [row] = await database.run((db) =>
        rowsOf<{ n: number }>(db)(sql`SELECT seq_scan::int AS n FROM pg_stat_user_tables WHERE relname = 't'`),
      );
      return row?.n;
    };
    await read(10);
    const small = await scans();
    await read(10);
    expect(await scans()).toBe((small ?? NaN) + 10);
    await database.run((db) => db.execute(sql`INSERT INTO t SELECT generate_series(1, 20000)`));
    await read(10);
    expect(await scans()).toBe((small ?? NaN) + 10);
  });
});

describe('a repeated statement, with a pooler in between', () => {
  it('never has a name', async ({ skip }) => {
    if (!THROUGH_POOLER) skip('only through a pooler: npm run test:pgbouncer');
    await times(20);
    expect(await database.run(namesIn)).toHaveLength(0);
  });
});

it('a listener hears the notifications of each channel, and listens again after its connection was cut', async (context) => {
  notThroughPooler(context, 'LISTEN hears nothing there');
  let heard = 0;
  let heardOnAnother = 0;
  const listener = listen(created.url, {
    a_channel: () => (heard += 1),
    another_channel: () => (heardOnAnother += 1),
  });
  onTestFinished(() => listener.stop());
  const notified = (): Promise<unknown> => database.run((db) => db.execute(sql`SELECT pg_notify('a_channel', '')`));
  const heardMoreThan = (count: number) => until(() => (heard > count ? heard : null));

  const connected = await heardMoreThan(0);
  await notified();
  const first = await heardMoreThan(connected);
  await database.run((db) =>
    db.execute(sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE datname = current_database() AND pid <> pg_backend_pid()`),
  );
  const again = await heardMoreThan(first);
  await notified();
  expect(await heardMoreThan(again)).toBe(again + 1);

  const before = heardOnAnother;
  await database.run((db) => db.execute(sql`SELECT pg_notify('another_channel', '')`));
  await until(() => heardOnAnother > before || null);
  expect(heardOnAnother).toBe(before + 1);
  expect(heard).toBe(again + 1);
});
