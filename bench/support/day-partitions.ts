import type { BenchDatabase } from './postgres.ts';

export const DAY_MS = 86_400_000;

const TABLES = ['runs', 'attempts'];

/** Where history is kept by the day: makes these days (their first moments, UTC). Where it is not, there is nothing to make. */
export async function makeDays(database: BenchDatabase, days: readonly number[]): Promise<void> {
  for (const table of TABLES) {
    if (!(await isPartitioned(database, table))) continue;
    await dropEmptyPast(database, table);
    const options = await optionsOf(database, table);
    for (const day of days) {
      await database.query(`CREATE TABLE IF NOT EXISTS ${nameOfDay(table, day)} PARTITION OF ${table}
        FOR VALUES FROM ('${iso(day)}') TO ('${iso(day + DAY_MS)}')${options}`);
    }
  }
}

export function nameOfDay(table: string, day: number): string {
  return `${table}_${iso(day).slice(0, 10).replaceAll('-', '')}`;
}

export function iso(moment: number): string {
  return new Date(moment).toISOString();
}

async function isPartitioned(database: BenchDatabase, table: string): Promise<boolean> {
  const [row] = await database.query(
    `SELECT relkind = 'p' AS partitioned FROM pg_class WHERE oid = '${table}'::regclass`,
  );
  return row?.['partitioned'] === true;
}

/** Of storage and autovacuum, as another partition has them. */
async function optionsOf(database: BenchDatabase, table: string): Promise<string> {
  const [row] = await database.query(`SELECT array_to_string(c.reloptions, ', ') AS options
    FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = '${table}'::regclass AND c.reloptions IS NOT NULL LIMIT 1`);
  return row ? ` WITH (${String(row['options'])})` : '';
}

/** What was before the first day is one partition, and in the way; of a new database it is empty. */
async function dropEmptyPast(database: BenchDatabase, table: string): Promise<void> {
  const found = await database.query(`SELECT inhrelid::regclass::text AS name FROM pg_inherits
    WHERE inhparent = '${table}'::regclass AND inhrelid::regclass::text LIKE '${table}_before%'`);
  for (const { name } of found) {
    const [row] = await database.query(`SELECT EXISTS (SELECT FROM ${String(name)}) AS filled`);
    if (row?.['filled'] === true) throw new Error(`${String(name)} is not empty`);
    await database.query(`DROP TABLE ${String(name)}`);
  }
}
