import { expect, test } from 'vitest';
import { createPartition } from '../../src/postgres/history-partitions.ts';
import { migrate } from '../../src/postgres/migrate.ts';
import { openDatabase } from '../../src/postgres/database.ts';
import { createDatabase } from '../support/postgres/cluster.ts';
import { sqlOfTest, storeOfTest } from '../support/of-test.ts';

const OLD_DAY = Date.parse('2000-01-01T00:00:00Z');

test('every database of these tests publishes all of its tables, as change data capture does', async () => {
  const store = await storeOfTest();
  const sql = sqlOfTest(store.url);
  expect(await sql`SELECT puballtables, pubupdate, pubdelete FROM pg_publication`).toEqual([
    { puballtables: true, pubupdate: true, pubdelete: true },
  ]);
});

test('rows of every table, days of history and of the audit included, can be changed while all tables are published', async () => {
  const database = await createDatabase();
  try {
    expect(await migrate(database.url)).toBeGreaterThan(0);
    const pool = openDatabase(database.url, 1);
    for (const parent of ['history', 'audit'] as const) await pool.run((db) => createPartition(db, OLD_DAY, parent));
    await pool.close();
    const sql = sqlOfTest(database.url);
    const tables = await sql<{ name: string; keyed: boolean }[]>`
      SELECT c.relname AS name, c.relreplident = 'd' AND EXISTS (
        SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary AND i.indisvalid) AS keyed
      FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') ORDER BY c.relname`;
    expect(tables.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['firelock_migrations', 'history', 'history_20000101', 'history_other']),
    );
    expect(tables.filter(({ keyed }) => !keyed)).toEqual([]);
    await sql.end();
    // Some days later: the coming days get their partitions.
    expect(await migrate(database.url)).toBe(0);
  } finally {
    await database.drop();
  }
});
