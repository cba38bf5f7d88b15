import { setTimeout as sleep } from 'node:timers/promises';
import { type Recurring, type Seconds, secondsIn } from './contestant.ts';
import { callApi } from '../test/support/calls.ts';
import { type Daemon, startDaemon } from './support/processes/daemon.ts';
import type { BenchDatabase } from './support/processes/postgres.ts';
import { sleepUntil } from './support/measures/vitals.ts';

export interface FirelockOptions {
  main: string;
  database: BenchDatabase;
  targetUrl: string;
  nodeOptions: readonly string[];
  /** What is armed: schedules, or runs of their own with one moment. */
  arms?: 'schedules' | 'oneOffRuns';
  /** Daemons on the one database; everything is asked of the first. */
  instances?: number;
}

const BATCH = 1000;
const PAGE = 500;
const SETTLED_POLL_MS = 50;

/** The built daemon as a process of its own, or several, spoken to over HTTP like any other. */
export async function startFirelock(options: FirelockOptions): Promise<Recurring> {
  const { database, targetUrl, arms = 'schedules', instances = 1 } = options;
  const daemons = await startDaemons(instances, options);
  const [first, ...others] = daemons as [Daemon, ...Daemon[]];
  let herds = 0;
  // Before the first batch was seen; afterwards twice what it took.
  let secondsPerBatch = 1.5;

  async function put(path: string, count: number, itemOf: (index: number) => object): Promise<void> {
    for (let from = 0; from < count; from += BATCH) {
      const items = Array.from({ length: Math.min(BATCH, count - from) }, (_, index) => itemOf(from + index));
      const startedAt = performance.now();
      await callApi(`${first.url}/api/v1/${path}/batch`, { items });
      secondsPerBatch = (2 * (performance.now() - startedAt)) / 1000;
    }
  }

  const target = { type: 'http', url: targetUrl };

  async function arm(count: number, dueAt: number): Promise<void> {
    herds += 1;
    if (arms === 'schedules') {
      await put('schedules', count, (n) => ({ id: `herd-${herds}-${n}`, cron: cronOnceAt(dueAt), target }));
    } else {
      await put('runs', count, (n) => ({ ref: String(n), runAt: new Date(dueAt).toISOString(), target }));
    }
  }

  async function history(count: number, seconds: Seconds): Promise<Set<string>> {
    const runs = await readGoodRuns(first.url, seconds.from, seconds.until);
    const fires = count * secondsIn(seconds);
    const ids = new Set(runs.map(({ id }) => id));
    const distinct = new Set(runs.map((run) => (arms === 'schedules' ? fireOf(run) : run.id)));
    if (ids.size !== fires || distinct.size !== fires) {
      throw new Error(`history has ${ids.size} runs of ${distinct.size} fires instead of ${fires}`);
    }
    return ids;
  }

  return {
    name: instances === 1 ? 'firelock' : `firelock, ${instances} instances`,
    pid: first.pid,
    others: others.map(({ pid }) => pid),
    vacuumed: false,
    leadSeconds: (count) => 3 + Math.ceil(count / BATCH) * secondsPerBatch,
    arm,
    settled: async (_count, dueAt, arrived) => {
      await arrived;
      return untilSettled(database, dueAt, { from: dueAt, until: dueAt + 1000 });
    },
    history: (count, dueAt) => history(count, { from: dueAt, until: dueAt + 1000 }),
    armEverySecond: async (count, { from, until }) => {
      const [startAt, endAt] = [from, until].map((at) => new Date(at).toISOString());
      await put('schedules', count, (n) => ({
        id: `every-second-${n}`,
        cron: '* * * * * *',
        startAt,
        endAt,
        target,
      }));
    },
    settledEverySecond: async (seconds) => {
      await untilSettled(database, seconds.until, seconds);
    },
    historyEverySecond: history,
    stop: async () => {
      await Promise.all(daemons.map((daemon) => daemon.stop()));
    },
  };
}

async function startDaemons(instances: number, options: FirelockOptions): Promise<Daemon[]> {
  const daemons: Daemon[] = [];
  while (daemons.length < instances) {
    daemons.push(await startDaemon({ ...options, databaseUrl: options.database.url }));
  }
  return daemons;
}

interface HistoryRun {
  id: string;
  scheduleId: string | null;
  scheduledFor: string;
  status: string;
  attempts: number;
}

/** All runs of the period (wall-clock ms, its end excluded). Throws if any has not succeeded at its first attempt. */
async function readGoodRuns(url: string, from: number, until: number): Promise<HistoryRun[]> {
  const runs: HistoryRun[] = [];
  const period = `from=${new Date(from).toISOString()}&to=${new Date(until).toISOString()}`;
  let cursor: string | null = null;
  do {
    const after: string = cursor === null ? '' : `&cursor=${encodeURIComponent(cursor)}`;
    const page = (await callApi(`${url}/api/v1/runs?${period}&limit=${PAGE}${after}`)) as {
      items: HistoryRun[];
      nextCursor: string | null;
    };
    for (const run of page.items) {
      if (run.status !== 'succeeded' || run.attempts !== 1) {
        const whole = await callApi(`${url}/api/v1/runs/${run.id}`);
        throw new Error(`not one good attempt: ${JSON.stringify(whole)}`);
      }
      runs.push(run);
    }
    cursor = page.nextCursor;
  } while (cursor !== null);
  return runs;
}

/**
 * Asks nothing before `at`; then until no fire of these seconds is to be planned or open. What arrived is recorded before. The question
 * reads open runs only: asked of all history it would be a part of what is measured. That all are there is checked afterwards.
 */
async function untilSettled(database: BenchDatabase, at: number, { from, until }: Seconds): Promise<number> {
  await sleepUntil(at);
  const [since, before] = [from, until].map((one) => `to_timestamp(${one / 1000})`);
  for (;;) {
    const [row] = await database.query(
      `SELECT NOT EXISTS (SELECT FROM schedules WHERE enabled AND next_fire_at < ${before})
        AND NOT EXISTS (SELECT FROM runs WHERE scheduled_for >= ${since} AND scheduled_for < ${before}) AS settled`,
    );
    if (row?.['settled'] === true) return Date.now();
    await sleep(SETTLED_POLL_MS);
  }
}

/** A cron expression with seconds that matches this moment, in UTC, and then none for a year. */
function cronOnceAt(at: number): string {
  const moment = new Date(at);
  return [
    moment.getUTCSeconds(),
    moment.getUTCMinutes(),
    moment.getUTCHours(),
    moment.getUTCDate(),
    moment.getUTCMonth() + 1,
    '*',
  ].join(' ');
}

function fireOf({ scheduleId, scheduledFor }: { scheduleId: string | null; scheduledFor: string }): string {
  return `${scheduleId}@${scheduledFor}`;
}
