import { type SQL, sql } from 'drizzle-orm';
import type { Executor } from '../../postgres/executor.ts';
import { rowsOf } from '../../postgres/sql/rows.ts';

/** A result, and how many ms the server worked on it, planning included: a caller that samples repeatedly decides by that. */
export interface Sample<T> {
  values: T;
  costMs: number;
}

/** A column of the one result row. Counted from the start of the transaction, which is before the planning. */
export const COST = sql`(extract(epoch FROM clock_timestamp() - now()) * 1000)::float8`;

export async function oneSample<Row extends object>(
  db: Executor,
  statement: SQL,
): Promise<Row & { cost_ms: number }> {
  const [row] = await rowsOf<Row & { cost_ms: number }>(db)(statement);
  if (!row) throw new Error('a gauges statement answered no row');
  return row;
}
