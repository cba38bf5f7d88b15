import { setTimeout } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Database, openDatabase } from '../../src/postgres/database.ts';
import { OutOfTime, QueryTimeout, TryAgain, batchFaultOf, isUnavailable } from '../../src/postgres/errors.ts';
import { migrate } from '../../src/postgres/migrate.ts';
import { queryPrepared, rowsOf } from '../../src/postgres/sql/rows.ts';
import { startFaultProxy } from '../chaos/cluster/fault-proxy.ts';
import { type TestDatabase, createDatabase } from '../support/postgres/cluster.ts';
import { startPostgresProxy } from '../support/postgres/postgres-proxy.ts';
import { notThroughPooler } from '../support/postgres/pooler.ts';
import { until } from '../support/until.ts';

let created: TestDatabase;
let database: Database;

beforeAll(async () => {
  created = await createDatabase();
});
afterAll(() => created.drop());

beforeEach(() => {
  database = openDatabase(created.url, 2);
});

/** Empty again for the next: making a database takes longer. */
afterEach(async () => {
  const empty = 'DROP SCHEMA IF EXISTS tenant CASCADE; DROP SCHEMA public CASCADE; CREATE SCHEMA public';
  await database.run((db) => db.execute(sql.raw(empty)));
  await database.close();
});

const one = () => database.run((db) => rowsOf<{ one: number }>(db)(sql`SELECT 1 AS one`));

describe('the database', () => {
  it('ends a statement on this side when its time is up, and the connection is good again', async () => {
    const slow = database.run((db) => db.execute(sql`SELECT pg_sleep(60)`), 100);
    await expect(slow).rejects.toThrow(QueryTimeout);
    expect(await slow.catch(isUnavailable)).toBe(true);
    for (let i = 0; i < 4; i += 1) expect(await one()).toEqual([{ one: 1 }]);
  });

  it('takes work for too much only if it answers others meanwhile', async () => {
    const proxy = await startFaultProxy(created.url);
    const behind = openDatabase(proxy.url, 2);
    const outOf = (work: Promise<unknown>) =>
      work.then(
        () => null,
        (error: unknown) => error,
      );
    const sleeping = () => outOf(behind.run((db) => db.execute(sql`SELECT pg_sleep(60)`), 100));
    // Sessions are open before the time counts.
    await Promise.all([1, 2].map(() => behind.run((db) => db.execute(sql`SELECT pg_sleep(0.1)`))));
    expect(batchFaultOf(await sleeping())).toBe('outOfTime');
    // No connection is free: the work that waits for one has not begun.
    const busy = [1, 2].map(() => outOf(behind.run((db) => db.execute(sql`SELECT pg_sleep(60)`), 2_000)));
    const waiting = await outOf(behind.run((db) => db.execute(sql`SELECT`), 100));
    expect([waiting instanceof QueryTimeout, batchFaultOf(waiting)]).toEqual([true, null]);
    // Each of these was too much, though all the rest of the pool was busy.
    expect((await Promise.all(busy)).map(batchFaultOf)).toEqual(['outOfTime', 'outOfTime']);
    await Promise.all([1, 2].map(() => behind.run((db) => db.execute(sql`SELECT pg_sleep(0.1)`))));
    proxy.set('hang');
    const hung = await sleeping();
    expect([hung instanceof QueryTimeout, hung instanceof OutOfTime, batchFaultOf(hung)]).toEqual([true, false, null]);
    proxy.set('open');
    await behind.close();
    await proxy.close();
  });

  it('takes work for too much also while all of its other connections are busy for longer', async () => {
    await Promise.all([1, 2].map(() => database.run((db) => db.execute(sql`SELECT pg_sleep(0.1)`))));
    const release = Promise.withResolvers<undefined>();
    const other = database.run(() => release.promise, 600_000);
    const waiting = database.run((db) => rowsOf<{ one: number }>(db)(sql`SELECT 1 AS one`), 600_000);
    const tooMuch = database.run((db) => db.execute(sql`SELECT pg_sleep(60)`), 100);
    expect(batchFaultOf(await tooMuch.catch((error: unknown) => error))).toBe('outOfTime');
    expect(await waiting).toEqual([{ one: 1 }]);
    release.resolve(undefined);
    await other;
  });

  it('ends it on the server too, in a transaction as well, so that a statement that waits for a lock holds no connection', async () => {
    const watcher = openDatabase(created.url, 1);
    await database.run((db) => db.execute(sql`CREATE TABLE locked ()`));
    let release: (() => void) | undefined;
    const holding = database.transaction(async (tx) => {
      await tx.execute(sql`LOCK TABLE locked`);
      await new Promise<void>((resolve) => (release = resolve));
    });
    await until(() => (release ? true : null));
    const read = sql`SELECT FROM locked`;
    await expect(database.run((db) => db.execute(read), 300)).rejects.toThrow(QueryTimeout);
    await expect(database.transaction((tx) => tx.execute(read), 300)).rejects.toThrow(QueryTimeout);
    const waiting = sql`SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
    await until(async () => ((await watcher.run((db) => rowsOf(db)(waiting))).length === 0 ? true : null));
    release?.();
    await holding;
    await watcher.close();
  });

  it.each([rowsOf, queryPrepared])(
    'limits how long a transaction may idle before its first statement runs: %o',
    async (ask) => {
      const setting = sql`SELECT current_setting('idle_in_transaction_session_timeout') AS value`;
      expect(await database.transaction((tx) => ask(tx)(setting))).toEqual([{ value: '15s' }]);
    },
  );

  it('counts the wait for a connection as part of that time, and says how much work waits', async () => {
    expect(database.usage?.()).toEqual({ size: 2, busy: 0, waiting: 0 });
    const release = Promise.withResolvers<undefined>();
    const holders = [1, 2].map(() => database.run(() => release.promise, 600_000));
    const another = database.run((db) => db.execute(sql`SELECT 1`), 100);
    expect(database.usage?.()).toEqual({ size: 2, busy: 2, waiting: 1 });
    await expect(another).rejects.toThrow(QueryTimeout);
    expect(database.usage?.()).toEqual({ size: 2, busy: 2, waiting: 0 });
    release.resolve(undefined);
    await Promise.all(holders);
    expect(await one()).toEqual([{ one: 1 }]);
  });

  it('opens a connection again that the server ended', async () => {
    await one();
    const other = openDatabase(created.url, 1);
    await other.run((db) =>
      db.execute(sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()`),
    );
    await other.close();
    const answers = await Promise.all([1, 2, 3, 4].map(() => one().catch(() => 'lost')));
    expect(answers).toContainEqual([{ one: 1 }]);
    expect(await one()).toEqual([{ one: 1 }]);
  });

  it('gets a session that takes longer to open than a statement may wait', async () => {
    const proxy = await startFaultProxy(created.url);
    const far = openDatabase(proxy.url, 1);
    // Some five round trips to open it, and one for the statement.
    proxy.delay(60);
    const ask = () => far.run((db) => rowsOf(db)(sql`SELECT 1 AS one`), 500);
    await expect(ask()).rejects.toThrow(QueryTimeout);
    expect(await until(() => ask().catch(() => null))).toEqual([{ one: 1 }]);
    await far.close();
    await proxy.close();
  });

  it('rolls a transaction back whose work throws', async () => {
    await database.run((db) => db.execute(sql`CREATE TABLE t (n int)`));
    const failing = database.transaction(async (tx) => {
      await tx.execute(sql`INSERT INTO t VALUES (1)`);
      throw new Error('no');
    });
    await expect(failing).rejects.toThrow('no');
    expect(await database.run((db) => rowsOf(db)(sql`SELECT * FROM t`))).toEqual([]);
  });

  it('runs no part of a transaction in another session if its own is lost', async () => {
    await database.run((db) => db.execute(sql`CREATE TABLE t (n int)`));
    const insert = (n: number) => sql`INSERT INTO t VALUES (${n}::int)`;
    const cut = database.transaction(async (tx) => {
      await tx.execute(insert(1));
      const [own] = await rowsOf<{ pid: number }>(tx)(sql`SELECT pg_backend_pid() AS pid`);
      await database.run((db) => db.execute(sql`SELECT pg_terminate_backend(${own?.pid}::int)`));
      await Promise.all([2, 3, 4, 5].map((n) => tx.execute(insert(n))));
    });
    await expect(cut).rejects.toThrow();
    await one();
    expect(await database.run((db) => rowsOf(db)(sql`SELECT * FROM t`))).toEqual([]);
  });

  it('sends nothing of a transaction that is over', async () => {
    await database.run((db) => db.execute(sql`CREATE TABLE t (n int)`));
    let insert: (() => Promise<unknown>) | undefined;
    const failing = database.transaction((tx) => {
      insert = () => tx.execute(sql`INSERT INTO t VALUES (1)`);
      return Promise.reject(new Error('no'));
    });
    await expect(failing).rejects.toThrow('no');
    await expect(insert?.()).rejects.toThrow();
    expect(await database.run((db) => rowsOf(db)(sql`SELECT * FROM t`))).toEqual([]);
  });

  it('fails with a transaction in which something failed, also if its work hides that', async () => {
    const swallowed = database.transaction(async (tx) => {
      await tx.execute(sql`SELECT 1 / 0`).catch(() => undefined);
    });
    await expect(swallowed).rejects.toThrow('rolled back');
    expect(await one()).toEqual([{ one: 1 }]);
  });

  it('goes on in a new session if the server has ended one under a statement', async () => {
    const single = openDatabase(created.url, 1);
    const pid = sql`SELECT pg_backend_pid() AS pid`;
    const [session] = await single.run((db) => rowsOf<{ pid: number }>(db)(pid));
    const ended = expect(single.run((db) => db.execute(sql`SELECT pg_sleep(20)`))).rejects.toThrow();
    const end = sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = ${session?.pid} AND query LIKE '%pg_sleep%'`;
    await until(async () => ((await database.run((db) => rowsOf(db)(end))).length > 0 ? true : null));
    await ended;
    const [next] = await single.run((db) => rowsOf<{ pid: number }>(db)(pid));
    expect(next?.pid).not.toBe(session?.pid);
    await single.close();
  });

  it('outlives connections that are cut in the middle of a transaction', async () => {
    const proxy = await startFaultProxy(created.url);
    const cut = openDatabase(proxy.url, 4);
    let faults = 0;
    let failed = 0;
    const transactions = Array.from({ length: 4 }, async () => {
      while (faults < 30) {
        await cut
          .transaction(async (tx) => {
            for (let i = 0; i < 5; i += 1) await tx.execute(sql`SELECT ${i}::int, pg_sleep(0.001)`);
          })
          .catch(async () => {
            failed += 1;
            await setTimeout(20);
          });
      }
    });
    const end = sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE datname = current_database() AND pid <> pg_backend_pid()`;
    for (; faults < 30; faults += 1) {
      await setTimeout(50);
      if (faults % 3 > 0) proxy.cut();
      else await database.run((db) => db.execute(end));
    }
    await Promise.all(transactions);
    expect(failed).toBeGreaterThan(0);
    // Nothing uncaught, which would have ended the process, and the pool works.
    expect(await cut.run((db) => rowsOf<{ one: number }>(db)(sql`SELECT 1 AS one`))).toEqual([{ one: 1 }]);
    await cut.close();
    await proxy.close();
  });

  it('repeats the whole transaction after a deadlock', async () => {
    await database.run((db) => db.execute(sql`CREATE TABLE t AS SELECT n FROM generate_series(1, 2) n`));
    let begun = 0;
    let bothHold: () => void = () => undefined;
    const holding = new Promise<void>((resolve) => (bothHold = resolve));
    const cross = (first: number, second: number) =>
      database.transaction(async (tx) => {
        await tx.execute(sql`SELECT FROM t WHERE n = ${first} FOR UPDATE`);
        begun += 1;
        if (begun === 2) bothHold();
        await holding;
        await tx.execute(sql`SELECT FROM t WHERE n = ${second} FOR UPDATE`);
        return first;
      });
    expect(await Promise.all([cross(1, 2), cross(2, 1)])).toEqual([1, 2]);
    // More often where the one that begins again is quicker than the one that has waited.
    expect(begun).toBeGreaterThanOrEqual(3);
  });

  it('has no connection left that hung during an outage, once that is over', async () => {
    const proxy = await startPostgresProxy(created.url);
    const behind = openDatabase(proxy.url, 3);
    const all = () =>
      Promise.allSettled([1, 2, 3].map(() => behind.run((db) => db.execute(sql`SELECT pg_sleep(0.1)`))));
    const succeeded = { status: 'fulfilled' };
    expect(await all()).toMatchObject([succeeded, succeeded, succeeded]);
    await proxy.interrupt('hang');
    await expect(behind.run((db) => db.execute(sql`SELECT`), 100)).rejects.toThrow(QueryTimeout);
    await proxy.restore();
    expect(await all()).toMatchObject([succeeded, succeeded, succeeded]);
    await behind.close();
    await proxy.close();
  });

  it('lets a session go on opening whose database is far away, though it was asked in vain meanwhile', async () => {
    const proxy = await startFaultProxy(created.url);
    const far = openDatabase(proxy.url, 1);
    const ask = (limitMs: number) => far.run((db) => rowsOf(db)(sql`SELECT 1 AS one`), limitMs);
    await ask(5_000);
    // Some five round trips: more than the question waits whether the database answers, less than a session may take to open.
    proxy.delay(280);
    await expect(ask(100)).rejects.toThrow(QueryTimeout);
    expect(await until(() => ask(5_000).catch(() => null))).toEqual([{ one: 1 }]);
    // The first session, the cancel request of its statement, and the second session.
    expect(proxy.connections()).toBe(3);
    await far.close();
    await proxy.close();
  });

  it('tells at once of work that is never too much, so that it can be tried again: the database is not asked first', async () => {
    const proxy = await startPostgresProxy(created.url);
    const small = openDatabase(proxy.url, 1, { mayBeTooMuch: false });
    await small.run((db) => db.execute(sql`SELECT`));
    await proxy.interrupt('hang');
    await expect(small.run((db) => db.execute(sql`SELECT`), 100)).rejects.toThrow(QueryTimeout);
    // Besides the session, a cancel request may be on its way.
    expect(proxy.connections()).toBeLessThan(3);
    await proxy.restore();
    await small.close();
    await proxy.close();
  });

  it('repeats work that asks for it, and gives up in the end', async () => {
    let tries = 0;
    const work = database.run(() => {
      tries += 1;
      throw new TryAgain('moved');
    });
    await expect(work).rejects.toThrow(TryAgain);
    expect(tries).toBe(6);
  });

  it('is unavailable if no server listens', async () => {
    const nowhere = openDatabase('postgres://nobody@127.0.0.1:1/none', 1);
    expect(await nowhere.run((db) => db.execute(sql`SELECT 1`)).catch(isUnavailable)).toBe(true);
    await nowhere.close();
  });
});

describe('migrations', () => {
  it('are applied once, however many begin at once on an empty database', async () => {
    const applied = await Promise.all(Array.from({ length: 8 }, () => migrate(created.url)));
    expect(applied.filter((count) => count > 0)).toHaveLength(1);
    expect(await migrate(created.url)).toBe(0);
  });

  it('keep instants to the millisecond and ids in the order of their characters', async () => {
    await migrate(created.url);
    const columns = await database.run((db) =>
      rowsOf<{
        column_name: string;
        data_type: string;
        datetime_precision: number | null;
        collation_name: string | null;
      }>(db)(
        sql`SELECT * FROM information_schema.columns WHERE table_name IN ('schedules', 'runs', 'attempts', 'instances')`,
      ),
    );
    const instants = columns.filter((column) => column.data_type.startsWith('timestamp'));
    expect(instants.length).toBeGreaterThan(15);
    expect(instants.every((column) => column.datetime_precision === 3)).toBe(true);
    expect(columns.find((column) => column.column_name === 'schedule_id')?.collation_name).toBe('C');
  });

  it('ignore another schema of the same database', async (context) => {
    notThroughPooler(context, 'PgBouncer refuses the start-up parameter search_path');
    await database.run((db) => db.execute(sql`CREATE SCHEMA tenant`));
    const url = new URL(created.url);
    url.searchParams.set('search_path', 'tenant');
    expect(await migrate(created.url)).toBeGreaterThan(0);
    expect(await migrate(url.href)).toBeGreaterThan(0);
    const [row] = await database.run((db) =>
      rowsOf<{ count: number }>(db)(
        sql`SELECT count(*)::int FROM information_schema.tables WHERE table_name = 'schedules' AND table_schema IN ('public', 'tenant')`,
      ),
    );
    expect(row?.count).toBe(2);
  });
});
