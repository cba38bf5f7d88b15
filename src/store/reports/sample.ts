import { type SQL, sql } from 'drizzle-orm';
import type { Executor } from '../../postgres/executor.ts';
import { recordsOf } from '../../postgres/sql/rows.ts';

/** A result, and how many ms the server worked on it, planning included: a caller that samples repeatedly decides by that. */
export interface Sample<T> {
  values: T;
  costMs: number;
}

/** A column of the one result row. Counted from the start of the transaction, which is before the planning. */
export const COST = sql`(extract(epoch FROM clock_timestamp() - now()) * 1000)::float8`;

/** The one row of a statement, which has COST as `cost_ms` beside its values. */
export async function oneSample<T extends object>(db: Executor, statement: SQL): Promise<Sample<T>> {
  const [row] = await recordsOf<T & { costMs: number }>(db)(statement);
  if (!row) throw new Error('a gauges statement answered no row');
  const { costMs, ...values } = row;
  return { values: values as unknown as T, costMs };
}
