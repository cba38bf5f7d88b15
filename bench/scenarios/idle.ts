import { setTimeout as sleep } from 'node:timers/promises';
import { type Bench, type Scenario, type ScenarioResult, atMost } from '../scenario.ts';
import { startDaemonOf } from '../support/processes/daemon.ts';
import type { BenchDatabase } from '../support/processes/postgres.ts';
import { seedRestingSchedules } from '../support/schedules.ts';
import { median } from '../support/measures/statistics.ts';
import { readHistogram, residentMegabytes, startCpuMeter } from '../support/measures/vitals.ts';

const FEW = 1_000;
const MAX_ROUNDS = 5;

interface Sizes {
  many: number;
  settleSeconds: number;
  seconds: number;
}

interface Rest {
  schedules: number;
  /** Null where the processes cannot be seen. */
  cpuSecondsPerMinute: { daemon: number | null; postgres: number | null; together: number | null };
  residentMegabytes: number | null;
  /** The mean of the minute. */
  tickMs: number;
  ticks: number;
}

export const idle: Scenario = {
  name: 'idle',
  title: 'a million schedules of which none is due: what it costs to wait, beside a thousand',
  run: async (bench) => {
    const sizes = bench.quick
      ? { many: 20_000, settleSeconds: 3, seconds: 5 }
      : { many: 1_000_000, settleSeconds: 30, seconds: 60 };
    const [few, many] = [await bench.server.createDatabase(), await bench.server.createDatabase()];
    try {
      await seed(bench, few, FEW);
      await seed(bench, many, sizes.many);
      // As the import left them, and so that what one leaves to be cleaned up is not done while the other is measured.
      for (const database of [many, few]) await keepUnanalyzed(database);
      return await measureInTurn(bench, sizes, { few, many });
    } finally {
      await few.drop();
      await many.drop();
    }
  },
};

async function seed(bench: Bench, database: BenchDatabase, count: number): Promise<void> {
  const startedAt = performance.now();
  const daemon = await startDaemonOf(bench, database);
  try {
    await seedRestingSchedules(database, daemon.url, { count, url: bench.receiver.url });
  } finally {
    await daemon.stop();
  }
  const seconds = (performance.now() - startedAt) / 1000;
  bench.log(`${count.toLocaleString('en')} schedules are there after ${seconds.toFixed(0)} s`);
}

async function measureInTurn(
  bench: Bench,
  sizes: Sizes,
  { few, many }: { few: BenchDatabase; many: BenchDatabase },
): Promise<ScenarioResult> {
  const rounds: { few: Rest; many: Rest }[] = [];
  const count = Math.min(bench.rounds, MAX_ROUNDS);
  while (rounds.length < count) {
    const isEven = rounds.length % 2 === 0;
    const first = await rest(bench, sizes, isEven ? few : many);
    const second = await rest(bench, sizes, isEven ? many : few);
    const round = isEven ? { few: first, many: second } : { few: second, many: first };
    rounds.push(round);
    bench.log(
      `round ${rounds.length}: ${show(round.many.cpuSecondsPerMinute.together, 2)} CPU s a minute, ` +
        `${show(round.many.residentMegabytes, 0)} MB, a tick ${round.many.tickMs.toFixed(2)} ms ` +
        `(of ${FEW.toLocaleString('en')} schedules ${round.few.tickMs.toFixed(2)} ms)`,
    );
  }
  return resultOf(sizes, rounds);
}

/** No autovacuum from now on. */
async function keepUnanalyzed(database: BenchDatabase): Promise<void> {
  const tables = await database.query(
    `SELECT oid::regclass::text AS name FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'`,
  );
  for (const { name } of tables) await database.query(`ALTER TABLE ${String(name)} SET (autovacuum_enabled = false)`);
}

/** A minute of a daemon that has been up for a while. */
async function rest(bench: Bench, sizes: Sizes, database: BenchDatabase): Promise<Rest> {
  await database.checkpoint();
  const daemon = await startDaemonOf(bench, database);
  try {
    await sleep(sizes.settleSeconds * 1000);
    const before = await readHistogram(daemon.url, TICK);
    const cpu = startCpuMeter(bench.server, [daemon.pid]);
    await sleep(sizes.seconds * 1000);
    const { daemons, postgres } = cpu.read();
    const after = await readHistogram(daemon.url, TICK);
    const [row] = await database.query('SELECT count(*)::int AS schedules FROM schedules');
    const perMinute = (seconds: number | null) => (seconds === null ? null : (seconds * 60) / sizes.seconds);
    return {
      schedules: Number(row?.['schedules']),
      cpuSecondsPerMinute: {
        daemon: perMinute(daemons),
        postgres: perMinute(postgres),
        together: perMinute(daemons === null || postgres === null ? null : daemons + postgres),
      },
      residentMegabytes: residentMegabytes(daemon.pid),
      tickMs: ((after.sum - before.sum) * 1000) / (after.count - before.count),
      ticks: after.count - before.count,
    };
  } finally {
    await daemon.stop();
  }
}

const TICK = 'firelock_tick_duration_seconds';

function resultOf(sizes: Sizes, rounds: readonly { few: Rest; many: Rest }[]): ScenarioResult {
  const of = (pick: (rest: Rest) => number | null) => ({
    few: median(rounds.map(({ few }) => pick(few) ?? NaN)),
    many: median(rounds.map(({ many }) => pick(many) ?? NaN)),
  });
  const cpu = of((rest) => rest.cpuSecondsPerMinute.together);
  const daemon = of((rest) => rest.cpuSecondsPerMinute.daemon);
  const postgres = of((rest) => rest.cpuSecondsPerMinute.postgres);
  const megabytes = of((rest) => rest.residentMegabytes);
  const tick = of((rest) => rest.tickMs);
  const together = (rest: Rest) => rest.cpuSecondsPerMinute.together ?? NaN;
  const ratio = median(rounds.map(({ few, many }) => together(many) / together(few)));
  const row = (which: 'few' | 'many', count: number) => [
    count.toLocaleString('en'),
    daemon[which].toFixed(2),
    postgres[which].toFixed(2),
    cpu[which].toFixed(2),
    `${megabytes[which].toFixed(0)} MB`,
    `${tick[which].toFixed(2)} ms`,
  ];
  return {
    scenario: 'idle',
    rounds: rounds.map((round) => ({ ...round })),
    table: {
      head: ['schedules', 'CPU s a minute: daemon', 'PostgreSQL', 'together', 'RSS of the daemon', 'mean tick'],
      rows: [row('few', FEW), row('many', sizes.many)],
    },
    bars: [
      // Unknown where processes cannot be seen.
      ...(Number.isNaN(ratio)
        ? []
        : [
            atMost(`CPU / that of ${FEW.toLocaleString('en')} schedules`, ratio, '×', 1.2),
            atMost('CPU of daemon and database in an empty minute', cpu.many, 's', null, 0.5),
          ]),
    ],
    notes: rounds.length < MAX_ROUNDS ? [`${rounds.length} rounds`] : [],
  };
}

function show(value: number | null, digits: number): string {
  return value?.toFixed(digits) ?? '?';
}
