import { sql } from 'drizzle-orm';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createConnectionBudget } from '../../src/postgres/connection-budget.ts';
import { openPools } from '../../src/postgres/database-pools.ts';
import { type Database, openDatabase } from '../../src/postgres/database.ts';
import { QueryTimeout } from '../../src/postgres/errors.ts';
import { freeConnections } from '../../src/postgres/free-connections.ts';
import { createDatabase } from '../support/postgres/cluster.ts';
import { THROUGH_POOLER } from '../support/postgres/pooler.ts';
import { roleOfTest } from '../support/postgres/role.ts';
import { until } from '../support/until.ts';

async function pools(connections: number) {
  const created = await createDatabase();
  const opened = openPools({ databaseUrl: created.url, connections, openDatabase });
  onTestFinished(async () => {
    await Promise.all(Object.values(opened).map((pool) => pool.close()));
    await created.drop();
  });
  return opened;
}

/** Work that goes on until it is released. */
function hold(database: Database) {
  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => (release = resolve));
  const done = database.run(async (db) => {
    await db.execute(sql`SELECT 1`);
    await released;
  });
  return { release, done };
}

it.each([5, 10])('of %i connections, calls leave one to workers, however many there are', async (size) => {
  const { api, calls } = await pools(size);
  const held = Array.from({ length: 5 }, () => hold(calls));
  expect(await api.run(() => Promise.resolve('a claim'))).toBe('a claim');
  expect(api.usage?.()).toMatchObject({ busy: Math.max(2, Math.floor(size / 3)) - 1, waiting: 0 });
  expect(calls.usage?.()).toMatchObject({ size: 0, waiting: 5 - (Math.max(2, Math.floor(size / 3)) - 1) });
  // A call waits for its share no longer than a statement may take.
  await expect(calls.run(() => Promise.resolve(), 10)).rejects.toThrow(QueryTimeout);
  for (const { release } of held) release();
  await Promise.all(held.map(({ done }) => done));
  expect(await calls.transaction(() => Promise.resolve('a call'))).toBe('a call');
});

it.each([
  [2, { main: 1, api: 1, background: 1 }],
  [3, { main: 1, api: 1, background: 1 }],
  [5, { main: 2, api: 2, background: 1 }],
  [10, { main: 5, api: 3, background: 2 }],
])('%i connections are divided', async (connections, sizes) => {
  const { main, api, background } = await pools(connections);
  const used = { main: main.usage?.().size, api: api.usage?.().size };
  expect({ ...used, background: background.usage?.().size }).toEqual(sizes);
});

/** Pools of a role that gets no more than so many connections. */
async function scarce(limit: number) {
  const { url, name, admin } = await roleOfTest();
  await admin.unsafe(`ALTER ROLE ${name} CONNECTION LIMIT ${limit}`);
  const budget = createConnectionBudget();
  const opened = openPools({ databaseUrl: url, connections: 10, openDatabase, budget });
  onTestFinished(async () => {
    await Promise.all(Object.values(opened).map((pool) => pool.close()));
  });
  const count = async () => {
    const [row] = await admin`SELECT count(*)::int FROM pg_stat_activity WHERE usename = ${name}`;
    return row?.['count'] as number;
  };
  return { ...opened, budget, count };
}

/** Waits until the server has answered it. */
const begun = (database: Database) =>
  new Promise<ReturnType<typeof hold>>((resolve, reject) => {
    let release = (): void => undefined;
    const released = new Promise<void>((end) => (release = end));
    const done = database.run(async (db) => {
      await db.execute(sql`SELECT 1`);
      resolve({ release, done });
      await released;
    }, 60_000);
    done.catch(reject);
  });

// A pooler gives each of them a connection.
describe.skipIf(THROUGH_POOLER)('with fewer connections than are asked for', () => {
  it('each purpose gets its first, whatever the others want, and what waits gets its turn', async () => {
    const { main, heartbeat, api, background, count } = await scarce(4);
    for (const pool of [main, heartbeat, api, background]) await pool.open?.();
    const first = await begun(main);
    const others = Array.from({ length: 8 }, () => main.run((db) => db.execute(sql`SELECT 1`), 60_000));
    for (const pool of [api, background]) await pool.run((db) => db.execute(sql`SELECT 1`));
    expect(await count()).toBeLessThanOrEqual(4);
    first.release();
    await Promise.all([first.done, ...others]);
    const held = await Promise.all([main, heartbeat, api, background].map(begun));
    for (const { release } of held) release();
  });

  it('none has a second while another lacks its first, and those that have some give them back', async () => {
    const { main, api, budget, count } = await scarce(3);
    const held = [await begun(main), await begun(main), await begun(main)];
    await expect(api.run((db) => db.execute(sql`SELECT 1`))).rejects.toThrow();
    expect(budget.hasAllFirsts()).toBe(false);
    for (const { release } of held) release();
    await until(async () => (await count()) === 1 || null);
    await api.run((db) => db.execute(sql`SELECT 1`));
    expect(budget.hasAllFirsts()).toBe(true);
  });

  it('as many are left free as another instance begins with', async () => {
    const { main, background, budget, count } = await scarce(9);
    const held = await Promise.all([main, main, main, main, main].map(begun));
    const learn = async () => {
      const free = await background.run(freeConnections);
      budget.learnFree(free);
      return free;
    };
    expect(await learn()).toBe(3);
    for (const { release } of held) release();
    await until(async () => (await count()) === 4 || null);
    expect(await learn()).toBe(5);
    const again = await Promise.all([main, main, main].map(begun));
    const another = begun(main);
    await expect(main.run(() => Promise.resolve(), 200)).rejects.toThrow(QueryTimeout);
    budget.learnFree(6);
    for (const { release } of [...again, await another]) release();
  });
});
