import { type SQL, sql } from 'drizzle-orm';
import { connectionLane } from '../../core/connections/connection.ts';
import { texts } from '../../postgres/sql/arrays.ts';
import type { Executor } from '../../postgres/executor.ts';
import { rowsOf } from '../../postgres/sql/rows.ts';

/** What schedules and runs name by its id, and what must be there for as long as they do. */
export type NamedTable = 'limits' | 'connections';

const NAMES: Readonly<Record<NamedTable, (id: string) => SQL>> = {
  limits: (id) => sql`limit_id = ${id}`,
  // The second condition is that of the index.
  connections: (id) => sql`lane = ${`http ${connectionLane(id)}`} AND starts_with(lane, 'http connection ')`,
};

/** Ids of schedules, and of open runs, that name it; at most `most` of each. */
export async function namersOf(
  tx: Executor,
  table: NamedTable,
  id: string,
  most: number,
): Promise<{ schedules: string[]; runs: string[] }> {
  const idsOf = async (namers: 'schedules' | 'runs') => {
    const rows = await rowsOf<{ id: string }>(tx)(sql`-- namersOf
      SELECT id::text FROM ${sql.raw(namers)} WHERE ${NAMES[table](id)} ORDER BY id LIMIT ${most}`);
    return rows.map((row) => row.id);
  };
  return { schedules: await idsOf('schedules'), runs: await idsOf('runs') };
}

/** Which of these exist; keeps them from being deleted until the transaction ends. Waits for a deletion under way. */
export async function keepNamed(
  tx: Executor,
  table: NamedTable,
  ids: readonly string[],
): Promise<ReadonlySet<string>> {
  if (ids.length === 0) return new Set();
  const rows = await rowsOf<{ id: string }>(tx)(sql`-- keepNamed
    SELECT id FROM ${sql.raw(table)} WHERE id = ANY (${texts([...new Set(ids)])}) ORDER BY id FOR KEY SHARE`);
  return new Set(rows.map(({ id }) => id));
}
