import { type SQL, sql } from 'drizzle-orm';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openDatabase } from '../../src/postgres/database.ts';
import { rowsOf } from '../../src/postgres/sql/rows.ts';
import { type Api, startApi } from '../api/api.ts';
import { createMigratedDatabase } from '../support/postgres/migrated-database.ts';
import { type Store, type TestInstance, createInstance } from '../support/pipeline.ts';
import { THROUGH_POOLER } from '../support/postgres/pooler.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';

let store: Store;
let receiver: Receiver;
const cleanUp: (() => Promise<unknown>)[] = [];

/** A role of its own, with a database of its own. */
beforeEach(async () => {
  const { url: adminUrl, drop } = await createMigratedDatabase();
  const admin = openDatabase(adminUrl, 1);
  const name = new URL(adminUrl).pathname.slice(1);
  const alter = (statement: string) => admin.run((db) => db.execute(sql.raw(statement)));
  await alter(`CREATE ROLE ${name} LOGIN SUPERUSER PASSWORD 'secret'`);
  const url = new URL(adminUrl);
  [url.username, url.password] = [name, 'secret'];
  const database = openDatabase(url.href, 8);
  store = {
    url: url.href,
    database,
    openDatabase,
    rows: <Row extends object>(statement: SQL) => database.run((db) => rowsOf<Row>(db)(statement)),
    drop,
  };
  receiver = await startReceiver(() => undefined);
  const dropRole = () => alter(`DROP ROLE ${name}`);
  cleanUp.push(
    drop,
    () => admin.close(),
    dropRole,
    () => database.close(),
    () => receiver.close(),
  );
});

afterEach(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step();
});

const nameOf = () => new URL(store.url).username;

async function startTwo(): Promise<[TestInstance, TestInstance]> {
  const instances: [TestInstance, TestInstance] = [await createInstance(store), await createInstance(store)];
  cleanUp.push(...instances.map((instance) => () => instance.stop()));
  return instances;
}

async function startApiHere(): Promise<Api> {
  const api = await startApi(store.url);
  cleanUp.push(() => api.stop());
  return api;
}

describe.skipIf(THROUGH_POOLER).each([
  ['repeatable read', 'ROLE'],
  ['serializable', 'DATABASE'],
])('where sessions begin as %s by ALTER %s', (isolation, what) => {
  it('one of the fires at the same moment starts, under skip', async () => {
    await setDefault(what, isolation);
    const [one, other] = await startTwo();
    for (const round of ['first', 'second', 'third']) {
      await one.put(round, { overlap: 'skip', url: receiver.url });
      // Sessions are opened before, so that all begin at the same moment.
      await Promise.all(Array.from({ length: 8 }, () => store.rows(sql`SELECT pg_sleep(0.1)`)));
      await Promise.all(Array.from({ length: 8 }, (_, n) => (n % 2 === 0 ? one : other).fire(round)));
      expect(await statusesOf(round)).toEqual(['pending 1', 'skipped 7']);
    }
  });

  it('statements read committed data, alone and in transactions, and the API answers', async () => {
    await setDefault(what, isolation);
    const setting = sql`SELECT current_setting('transaction_isolation') AS value`;
    expect(await store.rows(setting)).toEqual([{ value: 'read committed' }]);
    expect(await store.database.transaction((tx) => rowsOf(tx)(setting))).toEqual([{ value: 'read committed' }]);
    const api = await startApiHere();
    const body = { cron: '0 0 1 1 *', target: { type: 'http', url: receiver.url } };
    expect(await api.call('PUT', '/api/v1/schedules/one', body)).toMatchObject({ status: 201 });
    expect(await api.call('POST', '/api/v1/schedules/one/fire', {})).toMatchObject({ status: 202 });
    expect(await api.call('GET', '/api/v1/runs')).toMatchObject({ status: 200 });
  });
});

async function setDefault(what: string, isolation: string): Promise<void> {
  await store.rows(sql.raw(`ALTER ${what} ${nameOf()} SET default_transaction_isolation = '${isolation}'`));
  // For sessions that begin after it.
  await store.database.close();
  const database = openDatabase(store.url, 8);
  cleanUp.push(() => database.close());
  store = {
    ...store,
    database,
    rows: <Row extends object>(statement: SQL) => database.run((db) => rowsOf<Row>(db)(statement)),
  };
}

const statusesOf = async (scheduleId: string) => {
  const rows = await store.rows<{ outcome: string }>(
    sql`SELECT status || ' ' || count(*) AS outcome FROM all_runs WHERE schedule_id = ${scheduleId} GROUP BY status ORDER BY status`,
  );
  return rows.map(({ outcome }) => outcome);
};
