import { sql } from 'drizzle-orm';
import { expect, it, onTestFinished } from 'vitest';
import { openPools } from '../../src/postgres/database-pools.ts';
import { type Database, openDatabase } from '../../src/postgres/database.ts';
import { QueryTimeout } from '../../src/postgres/errors.ts';
import { createDatabase } from '../support/postgres/cluster.ts';

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
