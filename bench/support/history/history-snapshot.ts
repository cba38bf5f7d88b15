import postgres from 'postgres';
import type { Bench } from '../../scenario.ts';
import { startDaemonOf } from '../processes/daemon.ts';
import { type Fires, latenessOf, startHosts } from '../processes/hosts.ts';
import type { BenchDatabase } from '../processes/postgres.ts';
import { deleteSchedules, putSchedules } from '../schedules.ts';
import { percentile } from '../measures/statistics.ts';
import { nextWhole, sleepUntil, startCpuMeter } from '../measures/vitals.ts';

export interface SnapshotSizes {
  schedules: number;
  cron: string;
  /** What is measured as one: a herd's, or of schedules of every second. */
  periodMs: number;
  /** One goes before them that does not count. */
  normalPeriods: number;
  heldPeriods: number;
}

export interface Period {
  /** Whether the transaction was open. */
  held: boolean;
  fires: number;
  missing: number;
  /** From the moment the first were due to the last arrival of those due then. */
  herdSeconds: number;
  latenessMs: { p50: number; p99: number };
  cpuSeconds: { daemons: number | null; postgres: number | null };
  /** Of the table of schedules with its indexes, at the end. */
  schedulesMegabytes: number;
}

/** Lets schedules fire for some periods as ever, and for more while a transaction elsewhere keeps its snapshot. */
export async function underOldSnapshot(bench: Bench, database: BenchDatabase, sizes: SnapshotSizes): Promise<Period[]> {
  const hosts = await startHosts(1);
  try {
    const daemon = await startDaemonOf(bench, database, VARIABLES);
    try {
      const ids = Array.from({ length: sizes.schedules }, (_, index) => `recurring-${index}`);
      const target = { type: 'http', url: hosts.urls[0] };
      await putSchedules(
        daemon.url,
        ids.map((id) => ({ id, cron: sizes.cron, target })),
      );
      await database.calm();
      const measured = await measure(bench, { database, sizes, pid: daemon.pid, take: () => hosts.take() });
      await deleteSchedules(daemon.url, ids);
      return measured;
    } finally {
      await daemon.stop();
    }
  } finally {
    await hosts.stop();
  }
}

/** That open runs of deleted schedules are abandoned is no news here. */
const VARIABLES = { FIRELOCK_RETENTION_DAYS: '3650', LOG_LEVEL: 'error' };

interface Stage {
  database: BenchDatabase;
  sizes: SnapshotSizes;
  pid: number;
  take: () => Promise<Fires>;
}

type Seen = Pick<Period, 'held' | 'cpuSeconds' | 'schedulesMegabytes'> & { from: number };

async function measure(bench: Bench, { database, sizes, pid, take }: Stage): Promise<Period[]> {
  const { periodMs, normalPeriods, heldPeriods } = sizes;
  const warm = nextWhole(periodMs, 1_000);
  const seen: Seen[] = [];
  const came: Fires = { host: [], dueAt: [], at: [] };
  let snapshot: Snapshot | null = null;
  try {
    await sleepUntil(warm + periodMs - GAP_MS);
    for (let period = 0; period < normalPeriods + heldPeriods; period += 1) {
      const held = period >= normalPeriods;
      if (held) snapshot ??= await holdSnapshot(database.url);
      const from = warm + (period + 1) * periodMs;
      const cpu = startCpuMeter(bench.server, [pid]);
      await sleepUntil(from + periodMs - GAP_MS);
      const cpuSeconds = cpu.read();
      seen.push({ held, from, cpuSeconds, schedulesMegabytes: await megabytesOfSchedules(database) });
      add(came, await take());
    }
    await sleepUntil(Date.now() + LATEST_MS);
    add(came, await take());
  } finally {
    await snapshot?.release();
  }
  return seen.map((one) => periodOf(one, came, sizes));
}

/** A period is measured from shortly before its first fires are due. */
const GAP_MS = 200;
const LATEST_MS = 5_000;

function periodOf({ from, ...seen }: Seen, came: Fires, sizes: SnapshotSizes): Period {
  const lateness = latenessOf(came, { from, to: from + sizes.periodMs });
  const first = latenessOf(came, { from, to: from + 1 });
  const firesOfEach = sizes.cron.startsWith('* * * * * *') ? sizes.periodMs / 1000 : 1;
  return {
    ...seen,
    fires: lateness.length,
    missing: sizes.schedules * firesOfEach - lateness.length,
    herdSeconds: percentile(first, 1) / 1000,
    latenessMs: { p50: percentile(lateness, 0.5), p99: percentile(lateness, 0.99) },
  };
}

function add(all: Fires, more: Fires): void {
  for (const [index, at] of more.at.entries()) {
    all.at.push(at);
    all.dueAt.push(more.dueAt[index] ?? NaN);
    all.host.push(more.host[index] ?? NaN);
  }
}

interface Snapshot {
  release(): Promise<void>;
}

/** As a long report or a backup has it: nothing that dies from now on can be cleaned up. */
async function holdSnapshot(url: string): Promise<Snapshot> {
  const sql = postgres(url, { max: 1, onnotice: () => undefined });
  const own = await sql.reserve();
  await own`BEGIN ISOLATION LEVEL REPEATABLE READ`;
  await own`SELECT 1 FROM all_runs LIMIT 1`;
  return {
    release: async () => {
      await own`ROLLBACK`;
      own.release();
      await sql.end({ timeout: 5 });
    },
  };
}

async function megabytesOfSchedules(database: BenchDatabase): Promise<number> {
  const [row] = await database.query(`SELECT pg_total_relation_size('schedules') / 1e6 AS megabytes`);
  return Number(row?.['megabytes']);
}
