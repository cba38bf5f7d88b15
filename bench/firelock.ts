import { setTimeout as sleep } from 'node:timers/promises';
import type { Contestant } from './contestant.ts';
import { startDaemon } from './support/daemon.ts';
import type { BenchDatabase } from './support/postgres.ts';

export interface FirelockOptions {
  main: string;
  database: BenchDatabase;
  targetUrl: string;
  nodeOptions: readonly string[];
}

const BATCH = 1000;
const SETTLED_POLL_MS = 50;
const PAGE = 500;

/** The built daemon as a process of its own, spoken to over HTTP like any other. */
export async function startFirelock(options: FirelockOptions): Promise<Contestant> {
  const { database, targetUrl } = options;
  const daemon = await startDaemon({ ...options, databaseUrl: database.url });
  let herds = 0;
  // Before the first batch was seen; afterwards twice what it took.
  let secondsPerBatch = 1.5;

  async function arm(count: number, dueAt: number): Promise<void> {
    herds += 1;
    for (let first = 0; first < count; first += BATCH) {
      const items = Array.from({ length: Math.min(BATCH, count - first) }, (_, index) => ({
        id: `herd-${herds}-${first + index}`,
        cron: cronOnceAt(dueAt),
        target: { type: 'http', url: targetUrl },
      }));
      const startedAt = performance.now();
      await call(`${daemon.url}/api/v1/schedules/batch`, { items });
      secondsPerBatch = (2 * (performance.now() - startedAt)) / 1000;
    }
  }

  async function settled(count: number, dueAt: number): Promise<number> {
    await sleep(dueAt - Date.now());
    for (;;) {
      const [row] = await database.query(`SELECT NOT EXISTS (SELECT FROM runs WHERE status = 'pending')
        AND (SELECT count(*) FROM runs WHERE scheduled_for = to_timestamp(${dueAt / 1000})) = ${count} AS settled`);
      if (row?.['settled'] === true) return Date.now();
      await sleep(SETTLED_POLL_MS);
    }
  }

  return {
    name: 'firelock',
    pid: daemon.pid,
    posts: true,
    leadSeconds: (count) => 3 + Math.ceil(count / BATCH) * secondsPerBatch,
    arm,
    settled,
    history: (count, dueAt) => readHistory(daemon.url, count, dueAt),
    stop: () => daemon.stop(),
  };
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

interface Run {
  id: string;
  scheduleId: string;
  status: string;
  attempts: number;
}

async function readHistory(url: string, count: number, dueAt: number): Promise<Set<string>> {
  const ids = new Set<string>();
  const scheduleIds = new Set<string>();
  const period = `from=${new Date(dueAt).toISOString()}&to=${new Date(dueAt + 1000).toISOString()}`;
  let cursor: string | null = null;
  do {
    const after: string = cursor === null ? '' : `&cursor=${encodeURIComponent(cursor)}`;
    const page = (await call(`${url}/api/v1/runs?${period}&limit=${PAGE}${after}`)) as {
      items: Run[];
      nextCursor: string | null;
    };
    for (const run of page.items) {
      if (run.status !== 'succeeded' || run.attempts !== 1) {
        throw new Error(
          `not one good attempt: ${JSON.stringify(await call(`${url}/api/v1/runs/${run.id}`))}`,
        );
      }
      ids.add(run.id);
      scheduleIds.add(run.scheduleId);
    }
    cursor = page.nextCursor;
  } while (cursor !== null);
  if (ids.size !== count || scheduleIds.size !== count) {
    throw new Error(`history has ${ids.size} runs of ${scheduleIds.size} schedules instead of ${count}`);
  }
  return ids;
}

async function call(url: string, body?: object): Promise<unknown> {
  const response = await fetch(url, {
    ...(body && {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${text.slice(0, 500)}`);
  return JSON.parse(text);
}
