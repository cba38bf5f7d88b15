/**
 * How long the lists of a small team take, which shares an installation with a large one: as its token asks for them, and as one
 * without a scope does.
 *
 *     npm run bench:scopes -- [--schedules 1000000] [--small 100] [--runs 1000000] [--days 30] [--calls 20] [--json FILE]
 */
import { writeFileSync } from 'node:fs';
import { randomInt } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { createToken, tokenHash } from '../src/core/access/token.ts';
import { startReceiver } from './support/processes/receiver.ts';
import { buildDaemon, startDaemon } from './support/processes/daemon.ts';
import { type BenchDatabase, openServer } from './support/processes/postgres.ts';
import { describeMachine } from './support/measures/machine.ts';
import { seedTeams, SMALL_TEAM } from './support/seed-teams.ts';
import { RUN_TRIGGERS } from '../src/core/runs/run.ts';
import { call } from '../test/support/calls.ts';
import { median } from './support/measures/statistics.ts';

const { values: options } = parseArgs({
  options: {
    schedules: { type: 'string', default: '1000000' },
    small: { type: 'string', default: '100' },
    runs: { type: 'string', default: '1000000' },
    days: { type: 'string', default: '30' },
    calls: { type: 'string', default: '20' },
    json: { type: 'string' },
  },
});
const numbers = Object.fromEntries(Object.entries(options).map(([name, value]) => [name, Number(value)])) as Record<
  Exclude<keyof typeof options, 'json'>,
  number
>;
const KEEPING = { FIRELOCK_RETENTION_DAYS: '3650' };
/** Of each list of the small team. */
const REQUIRED_MS = 50;
/** A daemon looks at all schedules soon after its start. */
const SETTLING_MS = 30_000;

async function run(): Promise<void> {
  const build = buildDaemon();
  const server = await openServer();
  try {
    const machine = { ...describeMachine(), postgres: server.version, durability: server.durability };
    console.log(JSON.stringify(machine));
    const database = await server.createDatabase();
    try {
      await seed(build.main, database);
      const { scoped, unscoped } = await ask(build.main, database);
      const slow = scoped.filter(({ medianMs }) => medianMs > REQUIRED_MS);
      print(`token of the scope ${SMALL_TEAM}`, scoped);
      print('token without a scope', unscoped);
      console.log(
        slow.length === 0
          ? `none above ${REQUIRED_MS} ms in a scope`
          : `NOT MET by ${slow.map(({ path }) => path).join(', ')}`,
      );
      const report = { machine, ...numbers, requiredMs: REQUIRED_MS, scoped, unscoped };
      if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify(report, null, 2)}\n`);
      if (slow.length > 0) process.exitCode = 1;
    } finally {
      await database.drop();
    }
  } finally {
    await server.stop();
    build.remove();
  }
}

/** By a daemon that asks nobody for a token. */
async function seed(main: string, database: BenchDatabase): Promise<void> {
  const receiver = await startReceiver();
  const daemon = await startDaemon({ main, databaseUrl: database.url, nodeOptions: [], variables: KEEPING });
  const startedAt = performance.now();
  const log = (what: string) => {
    console.log(`${what}, after ${((performance.now() - startedAt) / 1000).toFixed(0)} s`);
  };
  try {
    await seedTeams(database, daemon.url, { ...numbers, url: receiver.url, log });
  } finally {
    await daemon.stop();
    await receiver.stop();
  }
}

async function ask(main: string, database: BenchDatabase): Promise<Record<'scoped' | 'unscoped', AskedList[]>> {
  const [small, all] = [createToken(randomInt), createToken(randomInt)];
  const line = (name: string, token: string) => `${name}:${tokenHash(token).toString('hex')}`;
  const tokens = [line(`small:operator[${SMALL_TEAM}]`, small), line('all:operator', all)].join(',');
  const variables = { ...KEEPING, FIRELOCK_API_TOKENS: tokens };
  const daemon = await startDaemon({ main, databaseUrl: database.url, nodeOptions: [], variables });
  const { calls } = numbers;
  try {
    await sleep(SETTLING_MS);
    return {
      scoped: await askLists(daemon.url, { token: small, paths: OF_SMALL, calls }),
      unscoped: await askLists(daemon.url, { token: all, paths: OF_ALL, calls }),
    };
  } finally {
    await daemon.stop();
  }
}

function print(who: string, asked: readonly AskedList[]): void {
  console.log(`\n${who}`);
  for (const { path, items, medianMs, worstMs, failed } of asked.toSorted((a, b) => b.medianMs - a.medianMs)) {
    const count = items === null ? '' : `, ${items} items`;
    const also = failed === 0 ? '' : `, ${failed} answered 5xx`;
    console.log(`  ${path}: ${medianMs.toFixed(1)} ms, worst ${worstMs.toFixed(1)} ms${count}${also}`);
  }
}

interface AskedList {
  path: string;
  /** In the first answer; null: it is no list. */
  items: number | null;
  medianMs: number;
  worstMs: number;
  /** Answers 5xx: the database took too long. */
  failed: number;
}

/** What takes that long even when it is warm is not asked as often. */
const TEDIOUS_MS = 2_000;

/** Each list and figure that a caller with a scope may ask for. `id` is a schedule, `key` the key of a one-off run. */
function listsOf({ id, key }: { id: string; key: string }): string[] {
  return [
    ...['', 'q=job-7', 'q=nowhere', 'label=tenth:3', 'label=tenth:none', 'status=paused', 'status=error'].map(
      (filter) => `schedules?${filter}`,
    ),
    ...['late=true', 'recent=20', 'limit=500'].map((filter) => `schedules?${filter}`),
    ...['', 'limit=500', 'status=failed', 'status=pending,running', 'status=unknown'].map((filter) => `runs?${filter}`),
    ...RUN_TRIGGERS.map((trigger) => `runs?trigger=${trigger}`),
    ...[`scheduleId=${id}`, `key=${key}`, 'label=tenth:3', 'unmet=start'].map((filter) => `runs?${filter}`),
    ...['runs', 'occurrences', 'upcoming', 'versions', 'stats'].map((part) => `schedules/${id}/${part}`),
    ...['queues', 'alerts', 'alerts?open=true', 'audit', 'audit?action=schedule.fire', `audit?scheduleId=${id}`],
    ...['stats', 'load', 'load?top=20', 'calendars', 'limits', 'connections', 'notifiers', 'me'],
  ];
}

const OF_SMALL = listsOf({ id: `${SMALL_TEAM}job-7`, key: `${SMALL_TEAM}1000` });
const OF_ALL = listsOf({ id: 'resting-7', key: 'other.1001' });

/** Asks each so many times, with this token, after a first time that does not count. */
async function askLists(
  daemonUrl: string,
  { token, paths, calls }: { token: string; paths: readonly string[]; calls: number },
): Promise<AskedList[]> {
  const found: AskedList[] = [];
  for (const path of paths) {
    const { items, ms } = await askOnce(`${daemonUrl}/api/v1/${path}`, token);
    const taken: number[] = [];
    let failed = 0;
    for (let left = ms > TEDIOUS_MS ? 1 : calls; left > 0; left -= 1) {
      await sleep(PAUSE_MS);
      const answer = await askOnce(`${daemonUrl}/api/v1/${path}`, token);
      taken.push(answer.ms);
      if (answer.status >= 500) failed += 1;
    }
    found.push({ path, items, medianMs: median(taken), worstMs: Math.max(...taken), failed });
  }
  return found;
}

/** Between two calls, as people make. */
const PAUSE_MS = 5;

async function askOnce(url: string, token: string): Promise<{ items: number | null; ms: number; status: number }> {
  const startedAt = performance.now();
  const { status, body } = await call(url, 'GET', { headers: { authorization: `Bearer ${token}` } });
  const ms = performance.now() - startedAt;
  if (status !== 200 && status < 500)
    throw new Error(`${url} answered ${status}: ${JSON.stringify(body).slice(0, 300)}`);
  return { items: (body as { items?: unknown[] }).items?.length ?? null, ms, status };
}

await run();
