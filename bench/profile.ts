/**
 * Where the time of a fire goes: the functions of Node and the statements of PostgreSQL, per fire, of a load that is
 * measured after one like it that is not. The bare pipeline's too, to see what a fire cannot do without.
 *
 *     npm run bench:profile -- [--load herd|steady|one-off] [--of firelock|bare] [--count N] [--top N]
 *                          [--postgres MAJOR] [--save DIRECTORY]
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import postgres from 'postgres';
import { startBare } from './bare/contestant.ts';
import type { Recurring } from './contestant.ts';
import { type CpuTime, microseconds } from './support/measures/cpu.ts';
import { fireEverySecond } from './every-second.ts';
import { startFirelock } from './firelock.ts';
import { type Stage, runHerd } from './herd.ts';
import { tableLines } from './report.ts';
import { buildDaemon } from './support/processes/daemon.ts';
import { type CpuProfile, type Shares, openInspector, sharesOf } from './support/measures/cpu-profile.ts';
import { freePort } from '../test/support/loopback.ts';
import { type BenchDatabase, type Server, openServer } from './support/processes/postgres.ts';
import { startReceiver } from './support/processes/receiver.ts';

const LOADS = { herd: 10_000, steady: 2_000, 'one-off': 50_000 };
const SECONDS = { warmUp: 5, seconds: 20, waitLimitMs: 30_000, checksHistory: false };
const EMBEDDED = '18';

const { values: options } = parseArgs({
  options: {
    load: { type: 'string', default: 'herd' },
    of: { type: 'string', default: 'firelock' },
    /** Schedules or runs; with steady, in each second. */
    count: { type: 'string' },
    /** Rows of each table. */
    top: { type: 'string', default: '25' },
    postgres: { type: 'string', default: EMBEDDED },
    /** Where the CPU profile and the statements are left, whole. */
    save: { type: 'string' },
  },
});
const load = options.load as keyof typeof LOADS;
if (!(load in LOADS)) throw new Error(`--load is one of ${Object.keys(LOADS).join(', ')}`);
const of = options.of;
if (of !== 'firelock' && of !== 'bare') throw new Error('--of is firelock or bare');
const count = Number(options.count ?? LOADS[load]);
const top = Number(options.top);
if (!(count >= 1) || !(top >= 1)) throw new Error('--count and --top must be numbers from 1');

interface Profiled {
  fires: number;
  cpu: CpuTime;
  profile: CpuProfile;
  statements: StatementShare[];
}

async function run(): Promise<void> {
  const server = await openServer(options.postgres, COUNTING);
  const receiver = await startReceiver();
  try {
    const database = await server.createDatabase();
    const port = await freePort();
    const contestant = await start(database, receiver.url, [`--inspect=127.0.0.1:${port}`]);
    try {
      console.log(`${contestant.name}, ${load}, ${count.toLocaleString('en')}, PostgreSQL ${server.version}`);
      print(await profile(contestant, { server, database, receiver }, port));
    } finally {
      await contestant.stop();
      await database.drop();
    }
  } finally {
    await receiver.stop();
    await server.stop();
  }
}

async function start(database: BenchDatabase, targetUrl: string, nodeOptions: string[]): Promise<Recurring> {
  if (of === 'bare') {
    const kind = load === 'one-off' ? 'drain' : 'pipeline';
    return startBare(kind, { databaseUrl: database.url, targetUrl }, database, nodeOptions);
  }
  const build = buildDaemon();
  const arms = load === 'one-off' ? 'oneOffRuns' : 'schedules';
  const contestant = await startFirelock({ main: build.main, database, targetUrl, nodeOptions, arms });
  return {
    ...contestant,
    stop: async () => {
      await contestant.stop();
      build.remove();
    },
  };
}

async function profile(contestant: Recurring, stage: Stage, port: number): Promise<Profiled> {
  const statistics = await openStatementStatistics(stage.server, stage.database);
  const inspector = await openInspector(port);
  const taken: Pick<Profiled, 'profile' | 'statements'>[] = [];
  const probe = {
    start: async () => {
      await statistics.reset();
      await inspector.startProfile();
    },
    stop: async () => {
      taken.push({ profile: await inspector.stopProfile(), statements: await statistics.read() });
    },
  };
  try {
    const { fires, cpu } = await measure(contestant, stage, { ...stage, probe });
    const [one] = taken;
    if (!one) throw new Error('nothing was profiled');
    return { ...one, fires, cpu };
  } finally {
    inspector.close();
    await statistics.close();
  }
}

/** Steady has its warm-up within; before the others goes one of the same size. */
async function measure(contestant: Recurring, warming: Stage, probed: Stage): Promise<{ fires: number; cpu: CpuTime }> {
  if (load === 'steady') {
    const { cpuSeconds } = await fireEverySecond(contestant, probed, { ...SECONDS, count });
    return { fires: count * SECONDS.seconds, cpu: cpuSeconds };
  }
  await runHerd(contestant, warming, count);
  const { cpuSeconds } = await runHerd(contestant, probed, count);
  return { fires: count, cpu: cpuSeconds };
}

function print({ fires, cpu, profile: taken, statements }: Profiled): void {
  const shares = sharesOf(taken);
  const cells = [microseconds(cpu.node), microseconds(cpu.postgres)];
  console.log(`CPU µs a fire, while it was watched: Node ${cells[0]}, PostgreSQL ${cells[1]}\n`);
  printNode(shares, fires);
  printStatements(statements, fires);
  if (options.save === undefined) return;
  mkdirSync(options.save, { recursive: true });
  writeFileSync(join(options.save, `${of}-${load}.cpuprofile`), JSON.stringify(taken));
  writeFileSync(join(options.save, `${of}-${load}-statements.json`), JSON.stringify(statements, null, 2));
}

function printNode({ busyMicroseconds, idleMicroseconds, functions, parts }: Shares, fires: number): void {
  const share = (value: number) => [(value / fires).toFixed(2), `${((100 * value) / busyMicroseconds).toFixed(1)} %`];
  const [busy, idle] = [busyMicroseconds, idleMicroseconds].map((value) => (value / fires).toFixed(1));
  console.log(`Node's main thread: ${busy} µs a fire busy, ${idle} µs idle\n`);
  for (const [what, rows] of Object.entries({ part: parts, function: functions })) {
    const cells = rows.slice(0, top).map((row) => [row.what, ...share(row.microseconds)]);
    console.log(`${tableLines({ head: [what, 'µs a fire by itself', 'of all'], rows: cells }).join('\n')}\n`);
  }
}

function printStatements(statements: readonly StatementShare[], fires: number): void {
  const rows = statements
    .slice(0, top)
    .map((one) => [
      shortened(one.statement),
      String(one.calls),
      (one.rows / fires).toFixed(2),
      ((one.milliseconds * 1000) / fires).toFixed(2),
      ((one.planningMilliseconds * 1000) / fires).toFixed(2),
      (one.walBytes / fires).toFixed(0),
      (one.buffers / fires).toFixed(1),
    ]);
  const head = ['statement', 'calls', 'rows a fire', 'µs a fire', 'of it planning', 'WAL bytes', 'buffers'];
  const all = statements.reduce((sum, one) => sum + one.milliseconds, 0);
  console.log(`PostgreSQL's statements: ${((all * 1000) / fires).toFixed(1)} µs a fire\n`);
  console.log(tableLines({ head, rows }).join('\n'));
}

/** Many begin alike, and say at their end what they do. */
function shortened(statement: string): string {
  const line = statement.replace(/\s+/g, ' ');
  return line.length <= 160 ? line : `${line.slice(0, 90)} … ${line.slice(-65)}`;
}

/** For a server that is to count statements. */
const COUNTING = [
  'shared_preload_libraries=pg_stat_statements',
  'pg_stat_statements.track_planning=on',
  'pg_stat_statements.track_utility=on',
];

/** What one kind of statement took, by pg_stat_statements. */
interface StatementShare {
  statement: string;
  calls: number;
  rows: number;
  /** Of execution and of planning; not the parsing of its text, nor what its connection takes. */
  milliseconds: number;
  planningMilliseconds: number;
  walBytes: number;
  /** Pages that it looked at. */
  buffers: number;
}

interface StatementStatistics {
  reset(): Promise<void>;
  /** Of one database, largest first. */
  read(): Promise<StatementShare[]>;
  close(): Promise<void>;
}

/** Lives in the database of the server's URL, so that the one that is watched stays as it is. */
async function openStatementStatistics({ url }: Server, watched: BenchDatabase): Promise<StatementStatistics> {
  const sql = postgres(url, { max: 1, onnotice: () => undefined });
  await sql`CREATE EXTENSION IF NOT EXISTS pg_stat_statements`;
  const name = new URL(watched.url).pathname.slice(1);
  return {
    reset: async () => {
      await sql`SELECT pg_stat_statements_reset()`;
    },
    read: async () => {
      const rows = await sql`SELECT query, calls::float8 AS calls, rows::float8 AS rows,
          total_exec_time + total_plan_time AS ms, total_plan_time AS planning, wal_bytes::float8 AS wal,
          (shared_blks_hit + shared_blks_read)::float8 AS buffers
        FROM pg_stat_statements JOIN pg_database d ON d.oid = dbid WHERE d.datname = ${name} ORDER BY ms DESC`;
      return rows.map((row) => ({
        statement: String(row['query']),
        calls: Number(row['calls']),
        rows: Number(row['rows']),
        milliseconds: Number(row['ms']),
        planningMilliseconds: Number(row['planning']),
        walBytes: Number(row['wal']),
        buffers: Number(row['buffers']),
      }));
    },
    close: () => sql.end({ timeout: 5 }),
  };
}

await run();
