import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { sql } from 'drizzle-orm';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type Database, openDatabase } from '../../src/postgres/database.ts';
import { isUnavailable } from '../../src/postgres/errors.ts';
import { rowsOf } from '../../src/postgres/sql/rows.ts';
import { listenOnLoopback } from '../support/loopback.ts';
import { type TestDatabase, createDatabase } from '../support/postgres/cluster.ts';
import { notThroughPooler } from '../support/postgres/pooler.ts';

let created: TestDatabase;
const cleanUp: (() => Promise<unknown>)[] = [];

beforeEach(async () => {
  created = await createDatabase();
  cleanUp.push(created.drop);
});

afterEach(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step();
});

const setting = sql`SELECT current_setting('transaction_isolation') AS value`;
const COMMITTED = [{ value: 'read committed' }];

function opened(url: string): Database {
  const database = openDatabase(url, 1);
  cleanUp.push(() => database.close());
  return database;
}

async function setDefault(isolation: string): Promise<void> {
  const database = openDatabase(created.url, 1);
  const name = new URL(created.url).pathname.slice(1);
  await database.run((db) =>
    db.execute(sql.raw(`ALTER DATABASE ${name} SET default_transaction_isolation = '${isolation}'`)),
  );
  // A pooler may have kept sessions of before.
  const end = sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()`;
  await database.run((db) => db.execute(end)).catch(() => undefined);
  await database.close();
}

/** Gives out keys of its own making, as a pooler does. */
async function startKeyChanger(): Promise<string> {
  const target = new URL(created.url);
  const server = createServer((client) => {
    const way = connect(Number(target.port), target.hostname);
    client.pipe(way);
    way.on('data', (chunk: Buffer) => {
      const at = chunk.indexOf('K\0\0\0\f');
      if (at >= 0) chunk.writeUInt32BE(7, at + 5);
      client.write(chunk);
    });
    for (const socket of [client, way]) {
      socket.on('error', () => undefined);
      socket.on('close', () => [client, way].forEach((end) => end.destroy()));
    }
  });
  const port = await listenOnLoopback(server);
  cleanUp.push(async () => {
    server.close();
    await once(server, 'close');
  });
  const url = new URL(created.url);
  url.port = String(port);
  return url.href;
}

it('a session of our own reads committed data, whatever the database’s default is', async (context) => {
  notThroughPooler(context, 'it is told what to do instead');
  await setDefault('serializable');
  const database = opened(created.url);
  expect(await database.run((db) => rowsOf(db)(setting))).toEqual(COMMITTED);
  expect(await database.transaction((tx) => rowsOf(tx)(setting))).toEqual(COMMITTED);
});

it('with a pooler in between, such a default is refused, with advice', async () => {
  await setDefault('repeatable read');
  const refused = opened(await startKeyChanger()).run((db) => rowsOf(db)(setting));
  await expect(refused).rejects.toThrow(
    /run as repeatable read.*ALTER ROLE \S+ SET default_transaction_isolation = 'read committed'/,
  );
  expect(await refused.catch(isUnavailable)).toBe(true);
});

it('with a pooler in between, transactions read committed data also if the default changes later', async () => {
  const database = opened(await startKeyChanger());
  expect(await database.run((db) => rowsOf(db)(setting))).toEqual(COMMITTED);
  // As if the next work came to a session that the pooler has opened since.
  await database.run((db) =>
    db.execute(sql.raw('SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE')),
  );
  expect(await database.transaction((tx) => rowsOf(tx)(setting))).toEqual(COMMITTED);
});

it('a session of our own compiles no statement and keeps no plan, and one of a pooler is left as it is', async (context) => {
  notThroughPooler(context, 'its sessions are left as they are');
  const planning = (url: string) =>
    opened(url).run((db) =>
      rowsOf(db)(sql`SELECT current_setting('jit') AS jit, current_setting('plan_cache_mode') AS plans`),
    );
  expect(await planning(created.url)).toEqual([{ jit: 'off', plans: 'force_custom_plan' }]);
  expect(await planning(await startKeyChanger())).toEqual([{ jit: 'on', plans: 'auto' }]);
});
