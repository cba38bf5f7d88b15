import { type SQL, sql } from 'drizzle-orm';
import type { Executor, Transaction } from '../../postgres/executor.ts';
import { rowsOf } from '../../postgres/sql/rows.ts';
import { namesOwned } from './in-scope.ts';

/** How many schedules have an id that begins with this, up to one more than `most`: it reads no more of them. */
export async function countSchedulesUnderLock(
  tx: Transaction,
  prefix: string,
  most: number,
): Promise<number> {
  await tx.execute(sql`-- countSchedulesUnderLock
    SELECT pg_advisory_xact_lock(hashtext('firelock scope ' || ${prefix} || ' ' || current_schema()))`);
  // A statement of its own: it sees what the last holder of the lock has written.
  const [row] = await rowsOf<{ count: number }>(tx)(sql`-- countSchedulesUnderLock
    SELECT count(*)::int AS count FROM (SELECT FROM schedules WHERE ${beginsWith(sql`id`, prefix)} LIMIT ${most + 1}) AS found`);
  return row?.count ?? 0;
}

/** How many open runs each of these scopes has: of schedules by their ids, and one-off runs by their keys. One look at all open runs. */
export async function countOpenRunsOf(db: Executor, prefixes: readonly string[]): Promise<number[]> {
  const counts = prefixes.map(
    (prefix) =>
      sql`count(*) FILTER (WHERE ${beginsWith(sql`schedule_id`, prefix)}
        OR trigger = 'api' AND ${beginsWith(sql`key COLLATE "C"`, prefix)})::int`,
  );
  const [row] = await rowsOf<{ counts: string }>(db)(sql`-- countOpenRunsOf
    SELECT concat_ws(',', ${sql.join(counts, sql`, `)}) AS counts FROM runs`);
  return row?.counts.split(',').map(Number) ?? [];
}

function beginsWith(column: SQL, prefix: string): SQL {
  return sql.join(namesOwned(column, [prefix]));
}
