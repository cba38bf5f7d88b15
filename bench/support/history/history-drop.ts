import { setTimeout as sleep } from 'node:timers/promises';
import postgres from 'postgres';
import { firstRunIdAt } from '../../../src/core/runs/run.ts';
import { DAY_MS } from '../../../src/core/instant.ts';
import type { Bench } from '../../scenario.ts';
import { type Daemon, startDaemonOf } from '../processes/daemon.ts';
import { iso, nameOfDay } from './day-partitions.ts';
import { type Hosts, latenessOf, startHosts } from '../processes/hosts.ts';
import type { BenchDatabase } from '../processes/postgres.ts';
import { deleteSchedules, putSchedules } from '../schedules.ts';
import { percentile } from '../measures/statistics.ts';
import { nextWhole, sleepUntil } from '../measures/vitals.ts';

export interface DropSizes {
  schedules: number;
  /** Before the second daemon starts, and after the day is gone. */
  seconds: number;
  /** After which a day that is still there is said to stay. */
  limitSeconds: number;
}

export interface Drop {
  day: string;
  runs: number;
  /** What was dropped as one: how long that transaction was seen. Null: not dropped so, or too short to be seen. */
  seenMs: number | null;
  /** From the first look that found some of the day missing to the first that found nothing of it; null: never. */
  goneWithinMs: number | null;
  /** From the start of the daemon that was to drop it; null: never. */
  goneAfterMs: number | null;
  /** Around the start of a daemon that drops nothing, and around that of the one that drops. */
  p99Ms: { without: number; with: number };
  worstMs: { without: number; with: number };
  fires: number;
}

/** Every-second schedules go on at one daemon while a second one starts that keeps history for a day less. */
export async function dropADay(bench: Bench, database: BenchDatabase, day: number, sizes: DropSizes): Promise<Drop> {
  const hosts = await startHosts(1);
  try {
    const daemon = await startWith(bench, database, LONG);
    try {
      const ids = Array.from({ length: sizes.schedules }, (_, index) => `beside-${iso(day).slice(0, 10)}-${index}`);
      const target = { type: 'http', url: hosts.urls[0] };
      await putSchedules(
        daemon.url,
        ids.map((id) => ({ id, cron: '* * * * * *', target })),
      );
      const dropped = await measure(bench, database, hosts, day, sizes);
      await deleteSchedules(daemon.url, ids);
      return dropped;
    } finally {
      await daemon.stop();
    }
  } finally {
    await hosts.stop();
  }
}

async function measure(
  bench: Bench,
  database: BenchDatabase,
  hosts: Hosts,
  day: number,
  sizes: DropSizes,
): Promise<Drop> {
  const [row] = await database.query(`SELECT count(*)::int AS runs FROM all_runs WHERE ${within(day)}`);
  await sleep(SETTLE_MS);
  const without = await around(hosts, sizes, () => startWith(bench, database, LONG));
  let watched: Watched = { seenMs: null, goneWithinMs: null, goneAfterMs: null };
  const dropping = await around(hosts, sizes, async () => {
    const watching = watchDay(database, day, sizes.limitSeconds * 1000);
    const daemon = await startWith(bench, database, retentionThatDrops(day));
    watched = await watching;
    return daemon;
  });
  return {
    day: iso(day).slice(0, 10),
    runs: Number(row?.['runs']),
    ...watched,
    p99Ms: { without: percentile(without, 0.99), with: percentile(dropping, 0.99) },
    worstMs: { without: percentile(without, 1), with: percentile(dropping, 1) },
    fires: dropping.length,
  };
}

const SETTLE_MS = 5_000;

/** How late all were that were due from before something happens until some time after it. */
async function around(hosts: Hosts, sizes: DropSizes, happen: () => Promise<Daemon>): Promise<number[]> {
  await hosts.take();
  const from = nextWhole(1000, 500);
  await sleepUntil(from - 100);
  const other = await happen();
  const to = nextWhole(1000, sizes.seconds * 1000);
  await sleepUntil(to + LATEST_MS);
  const lateness = latenessOf(await hosts.take(), { from, to });
  await other.stop();
  const expected = (sizes.schedules * (to - from)) / 1000;
  if (lateness.length !== expected) throw new Error(`${lateness.length} instead of ${expected} fires arrived`);
  return lateness;
}

const LATEST_MS = 3_000;

type Watched = Pick<Drop, 'seenMs' | 'goneWithinMs' | 'goneAfterMs'>;

async function watchDay(database: BenchDatabase, day: number, limitMs: number): Promise<Watched> {
  const edges = await database.query(`(SELECT id FROM all_runs WHERE ${within(day)} ORDER BY id LIMIT 1) UNION ALL
    (SELECT id FROM all_runs WHERE ${within(day)} ORDER BY id DESC LIMIT 1)`);
  const edge = (index: number) => `EXISTS (SELECT FROM all_runs WHERE id = '${String(edges[index]?.['id'])}')`;
  const startedAt = performance.now();
  const sightings = watchTransaction(database.url, nameOfDay(day));
  try {
    let brokenAt: number | null = null;
    for (let now = startedAt; now - startedAt < limitMs; now = performance.now()) {
      const [row] = await database.query(`SELECT ${edge(0)} AS first, ${edge(1)} AS last`);
      if (row?.['first'] === false) brokenAt ??= now;
      if (row?.['first'] === false && row['last'] === false) {
        const goneAt = performance.now();
        return {
          seenMs: sightings.longestMs(),
          goneWithinMs: goneAt - (brokenAt ?? now),
          goneAfterMs: goneAt - startedAt,
        };
      }
      await sleep(POLL_MS);
    }
    return { seenMs: sightings.longestMs(), goneWithinMs: null, goneAfterMs: null };
  } finally {
    await sightings.stop();
  }
}

/** How long any transaction that names this table was seen to last, on a connection that needs none of its locks. */
function watchTransaction(url: string, table: string): { longestMs(): number | null; stop(): Promise<void> } {
  const sql = postgres(url, { max: 1, onnotice: () => undefined });
  let longestMs: number | null = null;
  const stopping = new AbortController();
  const watching = (async () => {
    while (!stopping.signal.aborted) {
      const [row] = await sql`SELECT max(extract(epoch FROM clock_timestamp() - xact_start) * 1000)::float8 AS ms
        FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'
        AND pid <> pg_backend_pid() AND state <> 'idle' AND strpos(query, ${table}) > 0`;
      const ms = row?.['ms'] as number | null | undefined;
      if (typeof ms === 'number') longestMs = Math.max(longestMs ?? 0, ms);
      await sleep(POLL_MS);
    }
  })();
  return {
    longestMs: () => longestMs,
    stop: async () => {
      stopping.abort();
      await watching;
      await sql.end({ timeout: 5 });
    },
  };
}

const POLL_MS = 10;

/** By id, which begins with scheduledFor and has an index. */
function within(day: number): string {
  return `id >= '${firstRunIdAt(day)}' AND id < '${firstRunIdAt(day + DAY_MS)}'`;
}

/** What ended so many days ago, and one more, is kept: this day is over then, and the next one is not. */
function retentionThatDrops(day: number): number {
  return Math.max(1, Math.floor((Date.now() - day) / DAY_MS) - 2);
}

const LONG = 3_650;

function startWith(bench: Bench, database: BenchDatabase, retentionDays: number): Promise<Daemon> {
  return startDaemonOf(bench, database, {
    FIRELOCK_RETENTION_DAYS: String(retentionDays),
    // That open runs of deleted schedules are abandoned is no news here.
    LOG_LEVEL: 'error',
  });
}
