/** Writes dist/reference/schema.sql: the schema as PostgreSQL has it after all migrations. Starts a throw-away PostgreSQL. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import postgres from 'postgres';
import { migrate } from '../src/postgres/migrate.ts';
import { startCluster } from '../test/support/postgres/server.ts';

const FOLDER = join(import.meta.dirname, '..', 'dist', 'reference');
const HEAD = '-- history has a partition for each UTC day of ended_at beside its default one, history_other.';

const cluster = await startCluster();
try {
  const url = await cluster.createDatabase();
  await migrate(url);
  mkdirSync(FOLDER, { recursive: true });
  writeFileSync(join(FOLDER, 'schema.sql'), await describe(url));
} finally {
  await cluster.stop();
}

async function describe(url: string): Promise<string> {
  const sql = postgres(url, { max: 1 });
  try {
    const tables = await sql<{ oid: number; name: string; partition_key: string | null; options: string | null }[]>`
      SELECT c.oid::int, c.relname AS name, pg_get_partkeydef(c.oid) AS partition_key,
        array_to_string(c.reloptions, ', ') AS options
      FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
      ORDER BY c.relname`;
    const parts = [HEAD];
    for (const table of tables) parts.push(await describeTable(sql, table));
    const views = await sql<{ name: string; definition: string }[]>`
      SELECT viewname AS name, definition FROM pg_views WHERE schemaname = 'public' ORDER BY viewname`;
    for (const { name, definition } of views) parts.push(`CREATE VIEW ${name} AS\n${definition.trim()}`);
    const functions = await sql<{ definition: string }[]>`
      SELECT pg_get_functiondef(oid) AS definition FROM pg_proc
      WHERE pronamespace = 'public'::regnamespace ORDER BY proname`;
    for (const { definition } of functions) parts.push(`${definition.trim()};`);
    return `${parts.join('\n\n')}\n`;
  } finally {
    await sql.end();
  }
}

async function describeTable(
  sql: postgres.Sql,
  table: { oid: number; name: string; partition_key: string | null; options: string | null },
): Promise<string> {
  const columns = await sql<{ line: string }[]>`
    SELECT concat_ws(' ', a.attname, format_type(a.atttypid, a.atttypmod),
      CASE WHEN coll.collname = 'C' THEN 'COLLATE "C"' END, CASE WHEN a.attnotnull THEN 'NOT NULL' END,
      CASE WHEN a.attidentity <> '' THEN 'GENERATED ALWAYS AS IDENTITY' END,
      'DEFAULT ' || pg_get_expr(d.adbin, d.adrelid)) AS line
    FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
      LEFT JOIN pg_collation coll ON coll.oid = a.attcollation
    WHERE a.attrelid = ${table.oid} AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`;
  const constraints = await sql<{ line: string }[]>`
    SELECT 'CONSTRAINT ' || conname || ' ' || pg_get_constraintdef(oid) AS line FROM pg_constraint
    WHERE conrelid = ${table.oid} AND contype <> 'n' ORDER BY contype DESC, conname`;
  const indexes = await sql<{ line: string }[]>`
    SELECT pg_get_indexdef(i.indexrelid) || ';' AS line FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
    WHERE i.indrelid = ${table.oid} AND NOT i.indisprimary ORDER BY c.relname`;
  const lines = [...columns, ...constraints].map(({ line }) => `  ${line}`).join(',\n');
  const by = table.partition_key === null ? '' : ` PARTITION BY ${table.partition_key}`;
  const options = table.options === null ? '' : ` WITH (${table.options})`;
  return [`CREATE TABLE ${table.name} (\n${lines}\n)${by}${options};`, ...indexes.map(({ line }) => line)].join('\n');
}
