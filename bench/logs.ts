/**
 * Logs at volume: so many runs, whose workers append so much each; what that takes on disk and in WAL, how long appends, reads and other
 * calls take meanwhile, and how long the drop of such a day does.
 *
 *     npm run bench:logs -- [--runs 2000] [--kib 1024] [--workers 8] [--read 200] [--json FILE]
 */
import { randomInt } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { createToken, tokenHash } from '../src/core/access/token.ts';
import { type Answer, call } from '../test/support/calls.ts';
import { describeMachine } from './support/measures/machine.ts';
import { percentile } from './support/measures/statistics.ts';
import { readWritten, writtenSince } from './support/measures/wal.ts';
import { buildDaemon, startDaemon } from './support/processes/daemon.ts';
import { type BenchDatabase, openServer } from './support/processes/postgres.ts';

const { values: options } = parseArgs({
  options: {
    runs: { type: 'string', default: '2000' },
    kib: { type: 'string', default: '1024' },
    workers: { type: 'string', default: '8' },
    read: { type: 'string', default: '200' },
    json: { type: 'string' },
  },
});
const [RUNS, KIB, WORKERS, READ] = [options.runs, options.kib, options.workers, options.read].map(Number) as [
  number,
  number,
  number,
  number,
];
const [QUEUE, PART, MIB] = ['logs', 64 * 1024, 1024 * 1024];
/** A token may append 4 MiB a second. */
const [TOO_MANY, PAUSE_MS] = [429, 100];
/** Of ten runs that are done one after the other, however slow the machine is. */
const LEASE_SECONDS = 3600;
/** Without anything beside it. */
const ALONE_MS = 5_000;

/** Calls the daemon as one of its workers: each token has a rate of its own. */
type Call = (method: string, path: string, body?: unknown, worker?: number) => Promise<Answer>;

interface Stage {
  database: BenchDatabase;
  call: Call;
}

const build = buildDaemon();
const server = await openServer();
try {
  const machine = { ...describeMachine(), postgres: server.version, durability: server.durability };
  console.log(JSON.stringify(machine));
  const database = await server.createDatabase();
  const tokens = Array.from({ length: WORKERS + 1 }, () => createToken(randomInt));
  const lines = tokens.map((token, n) => `w${n}:${n === 0 ? 'admin' : 'worker'}:${tokenHash(token).toString('hex')}`);
  const variables = { FIRELOCK_API_TOKENS: lines.join(',') };
  const daemon = await startDaemon({
    main: build.main,
    databaseUrl: database.url,
    nodeOptions: [],
    variables,
  });
  try {
    const byToken: Call = (method, path, body, worker = 0) =>
      call(`${daemon.url}/api/v1${path}`, method, {
        ...(body === undefined ? {} : { body }),
        headers: {
          authorization: `Bearer ${tokens[worker] ?? ''}`,
          ...(body instanceof Uint8Array ? { 'content-type': 'text/plain' } : {}),
        },
      });
    const figures = await measure({ database, call: byToken });
    console.log(JSON.stringify(figures, null, 2));
    if (options.json !== undefined)
      writeFileSync(options.json, `${JSON.stringify({ machine, RUNS, KIB, WORKERS, ...figures }, null, 2)}\n`);
  } finally {
    await daemon.stop();
    await database.drop();
  }
} finally {
  await server.stop();
  build.remove();
}

async function measure(stage: Stage): Promise<Record<string, unknown>> {
  const { database } = stage;
  await submit(stage);
  const alone = await beside(stage, () => sleep(ALONE_MS));
  const before = await readWritten(database);
  const appends: number[] = [];
  const ids: string[] = [];
  const writing = await beside(stage, () =>
    Promise.all(Array.from({ length: WORKERS }, (_, n) => work(stage, n + 1, { appends, ids }))),
  );
  const { walBytes } = writtenSince(await readWritten(database), before);
  const mib = (RUNS * KIB) / 1024;
  const [size] = await database.query(`SELECT sum(pg_total_relation_size(inhrelid))::float8 AS bytes
    FROM pg_inherits WHERE inhparent = 'run_logs'::regclass`);
  const reads: number[] = [];
  const reading = await beside(stage, async () => {
    for (const id of ids.slice(0, READ)) await read(stage, id, reads);
  });
  const dropping = await beside(stage, () =>
    database.query(`SELECT firelock_drop_day('run_logs', (clock_timestamp() AT TIME ZONE 'UTC')::date)`),
  );
  return {
    appendedMib: mib,
    appendedMibPerSecond: round(mib / (writing.ms / 1000)),
    onDiskMib: round(Number(size?.['bytes']) / MIB),
    walMib: round(walBytes / MIB),
    appendMs: spread(appends),
    readMibPerSecond: round((Math.min(READ, ids.length) * KIB) / 1024 / (reading.ms / 1000)),
    readMs: spread(reads),
    dropMs: round(dropping.ms),
    otherCallsMs: {
      alone: spread(alone.calls),
      whileAppending: spread(writing.calls),
      whileReading: spread(reading.calls),
      whileDropping: spread(dropping.calls),
    },
  };
}

async function submit({ call: ask }: Stage): Promise<void> {
  for (let made = 0; made < RUNS; made += 1000) {
    const items = Array.from({ length: Math.min(1000, RUNS - made) }, (_, n) => ({
      ref: String(n),
      target: { type: 'pull', queue: QUEUE },
    }));
    good(await ask('POST', '/runs/batch', { items }));
  }
}

/** One worker: claims, appends part after part as fast as it may, completes. */
async function work(
  { call: ask }: Stage,
  worker: number,
  { appends, ids }: { appends: number[]; ids: string[] },
): Promise<void> {
  const workerId = `w${worker}`;
  for (let hasMore = true; hasMore;) {
    const claimed = good(
      await ask('POST', `/queues/${QUEUE}/claim`, { workerId, max: 10, leaseSeconds: LEASE_SECONDS }, worker),
    );
    const { items } = claimed.body as { items: { id: string; attempts: number }[] };
    for (const { id, attempts: attempt } of items) {
      for (let offset = 0; offset < KIB * 1024; offset += PART) {
        const path = `/runs/${id}/log?attempt=${attempt}&offset=${offset}&workerId=${workerId}`;
        appends.push(await append(() => ask('POST', path, lines(id, offset), worker)));
      }
      good(await ask('POST', `/runs/${id}/complete`, { status: 'succeeded', attempt, workerId }, worker));
      ids.push(id);
    }
    hasMore = items.length > 0;
  }
}

/** Until it is taken; answers how long the call took that was. */
async function append(send: () => Promise<Answer>): Promise<number> {
  for (;;) {
    const began = performance.now();
    const answer = await send();
    if (answer.status !== TOO_MANY) {
      good(answer);
      return performance.now() - began;
    }
    await sleep(PAUSE_MS);
  }
}

/** As jobs write them, which compresses as logs do. */
function lines(id: string, offset: number): Buffer {
  const line = (n: number) => `${new Date().toISOString()} INFO ${id} row ${offset + n} of table ${n % 7} done\n`;
  return Buffer.from(Array.from({ length: 900 }, (_, n) => line(n)).join('')).subarray(0, PART);
}

async function read({ call: ask }: Stage, id: string, reads: number[]): Promise<void> {
  for (let offset = 0; ;) {
    const began = performance.now();
    const { headers } = good(await ask('GET', `/runs/${id}/log?offset=${offset}`));
    reads.push(performance.now() - began);
    offset = Number(headers.get('firelock-log-offset'));
    if (headers.get('firelock-log-complete') === 'true') return;
  }
}

/** The work, and how long other calls take meanwhile: a list, and a run that is made. */
async function beside({ call: ask }: Stage, work: () => Promise<unknown>): Promise<{ ms: number; calls: number[] }> {
  const calls: number[] = [];
  let isOver = false;
  const began = performance.now();
  const done = work().finally(() => (isOver = true));
  const timed = async (method: string, path: string, body?: unknown) => {
    const from = performance.now();
    good(await ask(method, path, body));
    calls.push(performance.now() - from);
  };
  const witness = async () => {
    while (!isOver) {
      await timed('GET', '/schedules?limit=10');
      await timed('POST', '/runs', { target: { type: 'pull', queue: 'others' } });
      await sleep(20);
    }
  };
  await Promise.all([done, witness()]);
  return { ms: performance.now() - began, calls };
}

function good(answer: Answer): Answer {
  if (answer.status >= 300) throw new Error(`answered ${answer.status}: ${answer.text.slice(0, 300)}`);
  return answer;
}

function spread(values: readonly number[]) {
  const at = (share: number) => round(percentile(values, share));
  return { count: values.length, p50: at(0.5), p99: at(0.99), max: at(1) };
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
