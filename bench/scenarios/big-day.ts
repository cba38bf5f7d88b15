import postgres from 'postgres';
import { DAY_MS } from '../../src/core/instant.ts';
import { type Bench, type Scenario, type ScenarioResult, atMost } from '../scenario.ts';
import { makePastDays } from '../support/history/day-partitions.ts';
import { type Drop, dropADay } from '../support/history/history-drop.ts';
import { startDaemonOf } from '../support/processes/daemon.ts';
import type { BenchDatabase } from '../support/processes/postgres.ts';

const RUNS = { whole: 20_000_000, quick: 20_000 };
const SCHEDULES = 1_000;
const PORTION = 500_000;
const DROP = {
  whole: { schedules: 500, seconds: 10, limitSeconds: 900 },
  quick: { schedules: 20, seconds: 3, limitSeconds: 60 },
};
/** So many days ago: over, whatever the time of day, and the only one that is dropped. */
const AGE_DAYS = 4;

export const bigDay: Scenario = {
  name: 'big-day',
  title: 'a day of twenty million runs dropped from history while every-second schedules fire',
  run: async (bench) => {
    const size = bench.quick ? 'quick' : 'whole';
    const database = await bench.server.createDatabase();
    try {
      const day = Math.floor(Date.now() / DAY_MS) * DAY_MS - AGE_DAYS * DAY_MS;
      const seconds = await seed(bench, database, day, RUNS[size]);
      return resultOf(await dropADay(bench, database, day, DROP[size]), seconds);
    } finally {
      await database.drop();
    }
  },
};

/** Answers how many seconds it took. */
async function seed(bench: Bench, database: BenchDatabase, day: number, runs: number): Promise<number> {
  const daemon = await startDaemonOf(bench, database, { FIRELOCK_RETENTION_DAYS: '3650' });
  await makePastDays(database, [day]);
  await daemon.stop();
  const startedAt = performance.now();
  const sql = postgres(database.url, {
    max: 1,
    connection: { synchronous_commit: 'off' },
    onnotice: () => undefined,
  });
  try {
    for (let from = 0; from < runs; from += PORTION)
      await sql.unsafe(insert(day, { from, to: Math.min(from + PORTION, runs), of: runs }));
  } finally {
    await sql.end({ timeout: 5 });
  }
  return (performance.now() - startedAt) / 1000;
}

interface Portion {
  from: number;
  to: number;
  of: number;
}

/** Ended successes of a thousand schedules, spread over the day. */
function insert(day: number, { from, to, of }: Portion): string {
  return `INSERT INTO history (id, scheduled_for, schedule_uid, schedule_version, schedule_id, trigger, status, lane, priority, due_at,
      attempts, created_at, updated_at, finished_at, ended_at, handed_off_at, lateness_ms, result_status_code)
    SELECT (lpad(to_hex(ms), 12, '0') || '7' || substr(md5(n::text), 1, 19))::uuid, at, md5('s' || n % ${SCHEDULES})::uuid, 1,
      'big-day-' || n % ${SCHEDULES}, 'schedule', 'succeeded', 'http://127.0.0.1:1', 1, at, 1, at, at, at, at, at, 5, 204
    FROM (SELECT n, ${day} + (n::float8 * ${DAY_MS} / ${of})::bigint AS ms FROM generate_series(${from}, ${to - 1}) AS n) AS g,
      LATERAL (SELECT to_timestamp(ms / 1000.0) AS at) AS t`;
}

function resultOf(drop: Drop, seconds: number): ScenarioResult {
  const gone = drop.goneAfterMs === null ? Infinity : drop.goneAfterMs / 1000;
  const added = drop.p99Ms.with - drop.p99Ms.without;
  const runs = drop.runs.toLocaleString('en');
  return {
    scenario: bigDay.name,
    rounds: [{ ...drop }],
    table: {
      head: [
        'day',
        'runs',
        'its transaction',
        'gone after the start of the daemon',
        'p99 late without',
        'with',
      ],
      rows: [
        [
          drop.day,
          runs,
          drop.seenMs === null ? 'too short to be seen' : `${drop.seenMs.toFixed(0)} ms`,
          `${gone.toFixed(1)} s`,
          `${drop.p99Ms.without.toFixed(0)} ms`,
          `${drop.p99Ms.with.toFixed(0)} ms`,
        ],
      ],
    },
    bars: [
      atMost('the day dropped: its transaction', drop.seenMs ?? 0, 'ms', 1000),
      atMost('the day gone after the start of the daemon', gone, 's', 120),
      atMost('p99 lateness that it adds', added, 'ms', 50),
    ],
    notes: [`${runs} runs written in ${seconds.toFixed(0)} s; ${drop.fires} fires meanwhile, none missed.`],
  };
}
