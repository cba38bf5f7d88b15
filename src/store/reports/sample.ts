import { type SQL, sql } from 'drizzle-orm';
import type { Executor } from '../../postgres/executor.ts';
import { rowsOf } from '../../postgres/sql/rows.ts';

/** What was found, and for how many ms the server was at it, planning included: a caller that asks again and again goes by that. */
export interface Sample<T> {
  values: T;
  costMs: number;
}

/** Said of the one row that comes out at the end. From when the transaction began, which is before it was planned. */
export const COST = sql`(extract(epoch FROM clock_timestamp() - now()) * 1000)::float8`;

export async function oneSample<Row extends object>(
  db: Executor,
  statement: SQL,
): Promise<Row & { cost_ms: number }> {
  const [row] = await rowsOf<Row & { cost_ms: number }>(db, statement);
  if (!row) throw new Error('a gauges statement answered no row');
  return row;
}
