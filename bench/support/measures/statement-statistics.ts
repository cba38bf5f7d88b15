import postgres from 'postgres';
import type { BenchDatabase, Server } from '../processes/postgres.ts';

/** For a server that is to count statements. */
export const COUNTING = [
  'shared_preload_libraries=pg_stat_statements',
  'pg_stat_statements.track_planning=on',
  'pg_stat_statements.track_utility=on',
];

/** What one kind of statement took, by pg_stat_statements. */
export interface StatementShare {
  statement: string;
  calls: number;
  rows: number;
  /** Of execution and of planning; not the parsing of its text, nor what its connection takes. */
  milliseconds: number;
  planningMilliseconds: number;
  walBytes: number;
  /** Pages that it looked at. */
  buffers: number;
}

interface StatementStatistics {
  reset(): Promise<void>;
  /** Of one database, largest first. */
  read(): Promise<StatementShare[]>;
  close(): Promise<void>;
}

/** Lives in the database of the server's URL, so that the one that is watched stays as it is. */
export async function openStatementStatistics(
  { url }: Server,
  watched: BenchDatabase,
): Promise<StatementStatistics> {
  const sql = postgres(url, { max: 1, onnotice: () => undefined });
  await sql`CREATE EXTENSION IF NOT EXISTS pg_stat_statements`;
  const name = new URL(watched.url).pathname.slice(1);
  return {
    reset: async () => {
      await sql`SELECT pg_stat_statements_reset()`;
    },
    read: async () => {
      const rows = await sql`SELECT query, calls::float8 AS calls, rows::float8 AS rows,
          total_exec_time + total_plan_time AS ms, total_plan_time AS planning, wal_bytes::float8 AS wal,
          (shared_blks_hit + shared_blks_read)::float8 AS buffers
        FROM pg_stat_statements JOIN pg_database d ON d.oid = dbid WHERE d.datname = ${name} ORDER BY ms DESC`;
      return rows.map((row) => ({
        statement: String(row['query']),
        calls: Number(row['calls']),
        rows: Number(row['rows']),
        milliseconds: Number(row['ms']),
        planningMilliseconds: Number(row['planning']),
        walBytes: Number(row['wal']),
        buffers: Number(row['buffers']),
      }));
    },
    close: () => sql.end({ timeout: 5 }),
  };
}
