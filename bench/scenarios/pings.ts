import { setTimeout as sleep } from 'node:timers/promises';
import { callApi, send } from '../../test/support/calls.ts';
import { type Bench, type Scenario, type ScenarioResult, atMost } from '../scenario.ts';
import { median, percentile } from '../support/measures/statistics.ts';
import { nextWhole, startCpuMeter } from '../support/measures/vitals.ts';
import { type Daemon, startDaemonOf } from '../support/processes/daemon.ts';
import { type Jobs, type Pinged, ping, saidOf } from '../support/processes/pinger.ts';
import type { BenchDatabase } from '../support/processes/postgres.ts';
import { putSchedules } from '../support/schedules.ts';

const SIZES = {
  whole: { keys: 1_000, moments: 25, everyMs: 7_000, momentsAlone: 4 },
  quick: { keys: 100, moments: 3, everyMs: 4_000, momentsAlone: 1 },
};
const MAX_ROUNDS = 3;
/** Until the first moment: schedules are made meanwhile. */
const AHEAD_MS = 3_000;
/** Between two calls of the one caller beside the jobs. */
const PAUSE_MS = 20;
/** The ratio or, where that is more, so many milliseconds. */
const ALLOWED = { ratio: 1.2, ms: 50 };

type Size = (typeof SIZES)['whole'];

interface Period {
  /** Of the other calls. */
  calls: { count: number; p50: number; p99: number };
  pings: { count: number; p50: number; p99: number };
  refused: string[];
  /** Moments with another run than the job's reports make, or with none, or with two; and runs beside. */
  wrong: number;
  cpuSeconds: { daemons: number | null; postgres: number | null };
}

type Round = Record<'alone' | 'beside', Period>;

export const pings: Scenario = {
  name: 'pings',
  title: 'jobs of observed schedules report: what becomes of each moment, and the other calls meanwhile',
  run: async (bench) => {
    const size = SIZES[bench.quick ? 'quick' : 'whole'];
    const rounds: Round[] = [];
    while (rounds.length < Math.min(bench.rounds, MAX_ROUNDS)) {
      const alone = await measure(bench, { ...size, moments: size.momentsAlone }, false);
      const round = { alone, beside: await measure(bench, size, true) };
      rounds.push(round);
      const { calls, pings: made, wrong } = round.beside;
      bench.log(
        `round ${rounds.length}: p99 of other calls ${ms(alone.calls.p99)} alone, ${ms(calls.p99)} beside ${made.count} pings; ` +
          `${wrong} moments wrong`,
      );
    }
    return resultOf(rounds, size);
  },
};

async function measure(bench: Bench, size: Size, doJobsReport: boolean): Promise<Period> {
  const database = await bench.server.createDatabase();
  try {
    // That reports say of failures is no news.
    const daemon = await startDaemonOf(bench, database, { LOG_LEVEL: 'error' });
    try {
      const jobs = await haveJobs(daemon, size);
      const cpu = startCpuMeter(bench.server, [daemon.pid]);
      const ends = new AbortController();
      const calling = callAllTheTime(daemon.url, ends.signal);
      const pinged = doJobsReport ? await ping(jobs) : await silence(jobs);
      ends.abort();
      const durations = await calling;
      const wrong = doJobsReport ? await countWrong(database, jobs) : 0;
      return {
        calls: percentilesOf(durations),
        pings: percentilesOf(pinged.durationsMs),
        refused: pinged.refused,
        wrong,
        cpuSeconds: cpu.read(),
      };
    } finally {
      await daemon.stop();
    }
  } finally {
    await database.drop();
  }
}

/** Schedules that are due at the same moments, and only then; and one that is fired. */
async function haveJobs({ url }: Daemon, { keys: count, moments, everyMs }: Size): Promise<Jobs> {
  const firstAt = nextWhole(1_000, AHEAD_MS);
  const items = Array.from({ length: count }, (_, job) => ({
    ...{ id: `job-${job}`, everySeconds: everyMs / 1_000, target: null, observe: {} },
    startAt: new Date(firstAt).toISOString(),
    endAt: new Date(firstAt + moments * everyMs).toISOString(),
  }));
  await putSchedules(url, [...items, { id: 'fired', cron: '0 0 29 2 *', target: { type: 'pull', queue: 'q' } }]);
  const keys = new Map<string, string>();
  for (let cursor: string | null = ''; cursor !== null;) {
    const from: string = cursor === '' ? '' : `&cursor=${cursor}`;
    const page = (await callApi(`${url}/api/v1/schedules?limit=500${from}`)) as Page;
    for (const { id, pingKey } of page.items) if (pingKey !== null) keys.set(id, pingKey);
    cursor = page.nextCursor;
  }
  return { daemonUrl: url, keys: items.map(({ id }) => keys.get(id) ?? ''), firstAt, everyMs, moments };
}

interface Page {
  items: { id: string; pingKey: string | null }[];
  nextCursor: string | null;
}

async function silence({ firstAt, everyMs, moments }: Jobs): Promise<Pinged> {
  await sleep(firstAt + moments * everyMs - Date.now());
  return { durationsMs: [], refused: [] };
}

const CALLS = [
  ['GET', '/schedules?limit=50'],
  ['GET', '/schedules/job-7'],
  ['GET', '/runs?limit=50'],
  ['POST', '/schedules/fired/fire'],
  ['GET', '/schedules/job-7/runs?limit=50'],
] as const;

/** One caller, one call after the other. Answers how long each took. */
async function callAllTheTime(url: string, signal: AbortSignal): Promise<number[]> {
  const durations: number[] = [];
  while (!signal.aborted) {
    for (const [method, path] of CALLS) {
      const began = performance.now();
      const { status, text } = await send(`${url}/api/v1${path}`, method);
      durations.push(performance.now() - began);
      if (status >= 300) throw new Error(`${method} ${path} answered ${status}: ${text}`);
      await sleep(PAUSE_MS);
    }
  }
  return durations;
}

/** Each moment of each job has one run, which is what was reported of it, and there is no other. */
async function countWrong(database: BenchDatabase, { keys, firstAt, everyMs, moments }: Jobs): Promise<number> {
  const rows = await database.query(`SELECT schedule_id AS id, extract(epoch FROM scheduled_for) * 1000 AS at,
    concat_ws(' ', trigger, status, execution_id) AS is FROM all_runs WHERE observed`);
  const found = new Map<string, string[]>();
  for (const { id, at, is } of rows) {
    const key = `${String(id)} ${Number(at)}`;
    found.set(key, [...(found.get(key) ?? []), String(is)]);
  }
  let wrong = 0;
  for (const job of keys.keys())
    for (let moment = 0; moment < moments; moment += 1) {
      const key = `job-${job} ${firstAt + moment * everyMs}`;
      const { isFailure, rid } = saidOf(job, moment);
      const expected = ['schedule', isFailure ? 'failed' : 'succeeded', ...(rid === null ? [] : [rid])].join(' ');
      if (found.get(key)?.join() !== expected) wrong += 1;
      found.delete(key);
    }
  return wrong + found.size;
}

function resultOf(rounds: readonly Round[], { keys, moments }: Size): ScenarioResult {
  const of = (pick: (round: Round) => number) => median(rounds.map(pick));
  const alone = of((round) => round.alone.calls.p99);
  const row = (title: string, pick: (round: Round) => Period): string[] => [
    title,
    ms(of((round) => pick(round).calls.p50)),
    ms(of((round) => pick(round).calls.p99)),
    ms(of((round) => pick(round).pings.p50)),
    ms(of((round) => pick(round).pings.p99)),
    of((round) => pick(round).cpuSeconds.daemons ?? NaN).toFixed(1),
    of((round) => pick(round).cpuSeconds.postgres ?? NaN).toFixed(1),
  ];
  const refused = [...new Set(rounds.flatMap(({ beside }) => beside.refused))];
  return {
    scenario: pings.name,
    rounds: rounds.map((round) => ({ ...round })),
    table: {
      head: ['', 'other calls p50', 'p99', 'pings p50', 'p99', 'CPU s: daemon', 'PostgreSQL'],
      rows: [
        row('alone', (round) => round.alone),
        row(`beside ${(keys * moments * 2).toLocaleString('en')} pings`, (round) => round.beside),
      ],
    },
    bars: [
      atMost('moments that are wrong', Math.max(...rounds.map(({ beside }) => beside.wrong)), '', 0),
      atMost('reports that were refused', refused.length, 'ways', 0),
      atMost(
        'p99 of other calls that pings add',
        of((round) => round.beside.calls.p99 - round.alone.calls.p99),
        'ms',
        Math.max(ALLOWED.ms, (ALLOWED.ratio - 1) * alone),
      ),
    ],
    notes: [
      `${keys.toLocaleString('en')} jobs report a start and an end of ${moments} moments each.`,
      ...refused.map((one) => `refused: ${one}`),
    ],
  };
}

function percentilesOf(durations: readonly number[]): { count: number; p50: number; p99: number } {
  return { count: durations.length, p50: percentile(durations, 0.5), p99: percentile(durations, 0.99) };
}

function ms(value: number): string {
  return Number.isNaN(value) ? '' : `${value.toFixed(1)} ms`;
}
