import { type SQL, sql } from 'drizzle-orm';
import { laneOfConnection } from '../../core/connections/connection.ts';
import type { Instant } from '../../core/instant.ts';
import { texts } from '../../postgres/sql/arrays.ts';
import type { Executor } from '../../postgres/executor.ts';
import { type InstantText, rowsOf, toInstant } from '../../postgres/sql/rows.ts';

/** What schedules and runs name by its id, and what must be there for as long as they do. */
export type NamedTable = 'limits' | 'connections';

const NAMES: Readonly<Record<NamedTable, (id: string) => SQL>> = {
  limits: (id) => sql`limit_id = ${id}`,
  // The second condition is that of the index.
  connections: (id) => sql`lane = ${laneOfConnection(id)} AND starts_with(lane, 'http connection ')`,
};

/** `withSecrets`: those whose definition has secret values of its own. */
interface Named {
  table: NamedTable;
  id: string;
  which: 'all' | 'withSecrets';
}

/** Ids of schedules, and of open runs, that name it; at most `most` of each. */
export async function namersOf(
  tx: Executor,
  { table, id, which }: Named,
  most: number,
): Promise<{ schedules: string[]; runs: string[] }> {
  const idsOf = async (namers: 'schedules' | 'runs', uid: string, version: string) => {
    const counts = which === 'all' ? sql`true` : hasSecretValues(sql.raw(uid), sql.raw(version));
    const rows = await rowsOf<{ id: string }>(tx)(sql`-- namersOf
      SELECT id::text FROM ${sql.raw(namers)} WHERE ${NAMES[table](id)} AND ${counts} ORDER BY id LIMIT ${most}`);
    return rows.map((row) => row.id);
  };
  return {
    schedules: await idsOf('schedules', 'schedules.uid', 'schedules.version'),
    runs: await idsOf('runs', 'runs.schedule_uid', 'runs.schedule_version'),
  };
}

/** Since when each of these connections has its origin; keeps them as `keepNamed` does. */
export async function keepPlaced(
  tx: Executor,
  ids: readonly string[],
): Promise<ReadonlyMap<string, Instant>> {
  const rows = await rowsOf<{ id: string; placed_at: InstantText }>(tx)(sql`-- keepPlaced
    SELECT id, placed_at FROM connections WHERE id = ANY (${texts([...new Set(ids)])}) ORDER BY id FOR KEY SHARE`);
  return new Map(rows.map(({ id, placed_at }) => [id, toInstant(placed_at)]));
}

/** Whether the definition of this version has header values, or a signing secret (core/secrets/target-secrets.ts). */
function hasSecretValues(uid: SQL, version: SQL): SQL {
  const target = sql`v.definition -> 'target'`;
  const headers = (call: SQL) => sql`coalesce(${call} -> 'headers', '{}') <> '{}'`;
  return sql`EXISTS (SELECT FROM schedule_versions v WHERE v.schedule_uid = ${uid} AND v.version = ${version}
        AND (${headers(target)} OR ${headers(sql`${target} -> 'lookup'`)} OR ${headers(sql`${target} -> 'cancel'`)}
          OR coalesce(${target} -> 'secret', 'null') <> 'null'))`;
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
