import type { BenchDatabase } from '../processes/postgres.ts';
import { median, percentile } from './statistics.ts';

/** What a database has committed and written so far. */
export interface Written {
  commits: number;
  walBytes: number;
  /** Of the write-ahead log; null where this version of PostgreSQL does not count them so. */
  fsyncs: number | null;
}

export async function readWritten(database: BenchDatabase): Promise<Written> {
  const [row] = await database.query(`SELECT xact_commit::float8 AS commits,
    (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::float8 AS bytes, current_setting('server_version_num')::int AS version
    FROM pg_stat_database WHERE datname = current_database()`);
  const fsyncs =
    Number(row?.['version']) >= 180_000
      ? `SELECT sum(fsyncs)::float8 AS fsyncs FROM pg_stat_io WHERE object = 'wal'`
      : `SELECT to_jsonb(w)->>'wal_sync' AS fsyncs FROM pg_stat_wal AS w`;
  const [synced] = (await database.query(fsyncs)) as { fsyncs: number | string | null }[];
  return {
    commits: Number(row?.['commits']),
    walBytes: Number(row?.['bytes']),
    fsyncs: synced?.fsyncs ? Number(synced.fsyncs) : null,
  };
}

export function writtenSince(after: Written, before: Written): Written {
  return {
    commits: after.commits - before.commits,
    walBytes: after.walBytes - before.walBytes,
    fsyncs: after.fsyncs === null || before.fsyncs === null ? null : after.fsyncs - before.fsyncs,
  };
}

const COMMITS = 500;

/** One row updated, committed, and the next: mostly the disk's (or the standby's) word that it has it. */
export async function commitLatency(database: BenchDatabase): Promise<{ p50: number; p99: number }> {
  await database.query('CREATE TABLE bench_commits (n int)');
  await database.query('INSERT INTO bench_commits VALUES (0)');
  const times: number[] = [];
  while (times.length < COMMITS) {
    const startedAt = performance.now();
    await database.query('UPDATE bench_commits SET n = n + 1');
    times.push(performance.now() - startedAt);
  }
  await database.query('DROP TABLE bench_commits');
  return { p50: median(times), p99: percentile(times, 0.99) };
}
