import { onTestFinished } from 'vitest';
import { openDatabase } from '../../../src/postgres/database.ts';
import { migrate } from '../../../src/postgres/migrate.ts';
import { rowsOf } from '../../../src/postgres/sql/rows.ts';
import { sqlOfTest } from '../of-test.ts';
import type { Store } from '../pipeline.ts';
import { createDatabase } from './cluster.ts';
import { executeAt } from './server.ts';

export interface WronglyTimed extends Store {
  /** From now on its clock is ahead by so much. */
  setAhead(ms: number): Promise<void>;
  now(): Promise<number>;
}

/** A store whose database has a clock that a test sets: all statements ask `clock_timestamp()`, and find ours before PostgreSQL's own. */
export async function wronglyTimedStore(): Promise<WronglyTimed> {
  const { url, drop } = await createDatabase();
  onTestFinished(drop);
  const name = new URL(url).pathname.slice(1);
  await executeAt(
    url,
    `CREATE TABLE wrong_clock (ahead interval PRIMARY KEY); INSERT INTO wrong_clock VALUES ('0');
    CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS
      'SELECT pg_catalog.clock_timestamp() + ahead FROM public.wrong_clock';
    ALTER DATABASE ${name} SET search_path = public, pg_catalog`,
  );
  await migrate(url);
  const database = openDatabase(url, 5);
  onTestFinished(() => database.close());
  const own = sqlOfTest(url);
  return {
    url,
    database,
    openDatabase,
    rows: <Row extends object>(statement: Parameters<Store['rows']>[0]) =>
      database.run((db) => rowsOf<Row>(db)(statement)),
    drop: () => database.close(),
    setAhead: async (ms) => {
      await own`UPDATE wrong_clock SET ahead = ${ms} * interval '1 ms'`;
    },
    now: async () => {
      const [row] = await own<{ now: Date }[]>`SELECT clock_timestamp() AS now`;
      return row?.now.getTime() ?? NaN;
    },
  };
}
