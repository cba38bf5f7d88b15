/**
 * How throughput grows with the number of instances while targets take 100 ms, so that slots bound it and not the machine; and
 * what a fire costs the one PostgreSQL they share: CPU, commits, write-ahead log, and what waiting for a standby adds.
 *
 *     npm run bench:scaling -- [--instances 1,2,3,4,5,6,8] [--schedules N] [--rounds N] [--hosts N] [--answer-ms N]
 *       [--standby] [--json FILE]
 */
import { writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { type Daemon, buildDaemon, startDaemon } from './support/processes/daemon.ts';
import { type Hosts, latenessOf, startHosts } from './support/processes/hosts.ts';
import { describeMachine } from './support/measures/machine.ts';
import { type BenchDatabase, type Server, openServer } from './support/processes/postgres.ts';
import { putSchedules } from './support/schedules.ts';
import { type Standby, startStandby } from './support/processes/standby.ts';
import { median, percentile } from './support/measures/statistics.ts';
import { nextWhole, sleepUntil, startCpuMeter } from './support/measures/vitals.ts';
import { type Written, commitLatency, readWritten, writtenSince } from './support/measures/wal.ts';

const { values: options } = parseArgs({
  options: {
    instances: { type: 'string', default: '1,2,3,4,5,6,8' },
    schedules: { type: 'string', default: '20000' },
    rounds: { type: 'string', default: '3' },
    hosts: { type: 'string', default: '8' },
    'answer-ms': { type: 'string', default: '100' },
    standby: { type: 'boolean', default: false },
    json: { type: 'string' },
  },
});

const sizes = options.instances.split(',').map(Number);
const [schedules, rounds, hostCount, answerMs] = (['schedules', 'rounds', 'hosts', 'answer-ms'] as const).map((name) =>
  Number(options[name]),
) as [number, number, number, number];
if (![...sizes, schedules, rounds, hostCount].every((value) => Number.isInteger(value) && value >= 1)) {
  throw new Error('whole numbers from 1 are wanted');
}

const WARM_UP = 1_000;
const HERD_LIMIT_MS = 300_000;
/** Counters of backends are told to others about once a second. */
const COUNTED_AFTER_MS = 1_500;

interface Herd {
  standby: boolean;
  instances: number;
  seconds: number;
  firesPerSecond: number;
  p99Ms: number;
  /** Until all is settled; the standby's apart. */
  cpuSeconds: { daemons: number | null; postgres: number | null; standby: number | null };
  /** From shortly before the due moment until all is settled. */
  elapsedSeconds: number;
  written: Written;
}

interface Stage {
  server: Server;
  main: string;
  hosts: Hosts;
  standby: Standby | null;
}

await run();

async function run(): Promise<void> {
  const build = buildDaemon();
  const server = await openServer();
  const hosts = await startHosts(hostCount, answerMs);
  try {
    const machine = { ...describeMachine(), postgres: server.version, durability: server.durability };
    console.log(JSON.stringify(machine));
    const stage = { server, main: build.main, hosts, standby: null };
    const alone = await measureAll(stage);
    const followed = options.standby ? await withStandby(stage) : null;
    const report = { machine, schedules, hosts: hostCount, answerMs, alone, followed };
    console.log(`\n${tableOf('one PostgreSQL', alone)}`);
    if (followed) console.log(`\n${tableOf('and a synchronous standby beside it', followed)}`);
    if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify(report, null, 2)}\n`);
  } finally {
    await hosts.stop();
    await server.stop();
    build.remove();
  }
}

interface Measured {
  commitMs: { p50: number; p99: number };
  herds: Herd[];
}

async function withStandby(stage: Stage): Promise<Measured> {
  const database = await stage.server.createDatabase();
  try {
    const standby = await startStandby(database.url);
    try {
      return await measureAll({ ...stage, standby });
    } finally {
      await standby.stop();
    }
  } finally {
    await database.drop();
  }
}

/** Up and down in turn, so that none always comes first. */
async function measureAll(stage: Stage): Promise<Measured> {
  const commitMs = await commitLatencyOn(stage.server);
  console.log(`a commit of one row takes ${commitMs.p50.toFixed(2)} ms (p99 ${commitMs.p99.toFixed(2)} ms)`);
  const herds: Herd[] = [];
  for (let round = 1; round <= rounds; round += 1) {
    for (const instances of round % 2 === 1 ? sizes : sizes.toReversed()) {
      const herd = await oneSize(stage, instances);
      herds.push(herd);
      const rate = Math.round(herd.firesPerSecond).toLocaleString('en');
      console.log(`round ${round}: ${instances} instances${stage.standby ? ', standby' : ''}: ${rate} fires/s`);
    }
  }
  return { commitMs, herds };
}

async function commitLatencyOn(server: Stage['server']): ReturnType<typeof commitLatency> {
  const database = await server.createDatabase();
  try {
    return await commitLatency(database);
  } finally {
    await database.drop();
  }
}

async function oneSize(stage: Stage, instances: number): Promise<Herd> {
  const database = await stage.server.createDatabase();
  const daemons: Daemon[] = [];
  try {
    while (daemons.length < instances) {
      daemons.push(await startDaemon({ main: stage.main, databaseUrl: database.url, nodeOptions: [] }));
    }
    const warm = await runHerd(stage, {
      database,
      daemons,
      name: 'warm-up',
      count: WARM_UP,
      msPerSchedule: 3,
    });
    const msPerSchedule = 2 * warm.msPerSchedule;
    const { herd } = await runHerd(stage, {
      database,
      daemons,
      name: 'herd',
      count: schedules,
      msPerSchedule,
    });
    return herd;
  } finally {
    await Promise.all(daemons.map((daemon) => daemon.stop()));
    await database.drop();
  }
}

interface Plan {
  database: BenchDatabase;
  daemons: readonly Daemon[];
  name: string;
  count: number;
  /** That long it may take to create one. */
  msPerSchedule: number;
}

async function runHerd(stage: Stage, plan: Plan): Promise<{ herd: Herd; msPerSchedule: number }> {
  const { server, hosts, standby } = stage;
  const { database, daemons, count } = plan;
  const dueAt = nextWhole(1000, 3_000 + count * plan.msPerSchedule);
  const armedAt = performance.now();
  await arm(plan, hosts, dueAt);
  const msPerSchedule = (performance.now() - armedAt) / count;
  await database.checkpoint();
  await hosts.take();
  if (Date.now() > dueAt - 500) throw new Error('armed too late');
  await sleepUntil(dueAt - 300);
  const before = await readWritten(database);
  const cpu = startCpuMeter(
    server,
    daemons.map(({ pid }) => pid),
  );
  const standbyBefore = standby?.cpuSeconds() ?? null;
  const lateness = await arrivals(hosts, dueAt, count);
  await settled(database, dueAt, count);
  const used = cpu.read();
  const standbyAfter = standby?.cpuSeconds() ?? null;
  const elapsedSeconds = (Date.now() - dueAt) / 1000;
  await sleep(COUNTED_AFTER_MS);
  const seconds = percentile(lateness, 1) / 1000;
  const herd = {
    standby: standby !== null,
    instances: daemons.length,
    seconds,
    firesPerSecond: count / seconds,
    p99Ms: percentile(lateness, 0.99),
    cpuSeconds: {
      ...used,
      standby: standbyAfter === null || standbyBefore === null ? null : standbyAfter - standbyBefore,
    },
    elapsedSeconds,
    written: writtenSince(await readWritten(database), before),
  };
  return { herd, msPerSchedule };
}

async function arm({ daemons, name, count }: Plan, hosts: Hosts, dueAt: number): Promise<void> {
  const at = new Date(dueAt).toISOString();
  const items = Array.from({ length: count }, (_, index) => ({
    id: `${name}-${index}`,
    at,
    target: { type: 'http', url: hosts.urls[index % hosts.urls.length] },
  }));
  await putSchedules(daemons[0]?.url ?? '', items);
}

/** How late each came; every one must come, and once. */
async function arrivals(hosts: Hosts, dueAt: number, count: number): Promise<number[]> {
  const lateness: number[] = [];
  await sleepUntil(dueAt);
  while (lateness.length < count && Date.now() < dueAt + HERD_LIMIT_MS) {
    await sleep(100);
    lateness.push(...latenessOf(await hosts.take(), { from: dueAt, to: dueAt + 1 }));
  }
  if (lateness.length !== count) throw new Error(`${lateness.length} instead of ${count} fires arrived`);
  return lateness;
}

async function settled(database: BenchDatabase, dueAt: number, count: number): Promise<void> {
  for (;;) {
    const [row] = await database.query(`SELECT count(*)::int AS done FROM all_runs
      WHERE scheduled_for = '${new Date(dueAt).toISOString()}' AND status = 'succeeded' AND attempts = 1`);
    if (row?.['done'] === count) return;
    if (Date.now() > dueAt + HERD_LIMIT_MS) throw new Error(`${String(row?.['done'])} of ${count} have succeeded`);
    await sleep(100);
  }
}

function tableOf(title: string, { commitMs, herds }: Measured): string {
  const one = median(
    herds.filter(({ instances }) => instances === sizes[0]).map(({ firesPerSecond }) => firesPerSecond),
  );
  const rows = sizes.map((instances) => {
    const of = (pick: (herd: Herd) => number | null) =>
      median(herds.filter((herd) => herd.instances === instances).map((herd) => pick(herd) ?? NaN));
    const rate = of(({ firesPerSecond }) => firesPerSecond);
    const micros = (pick: (herd: Herd) => number | null) => (of(pick) * 1e6) / schedules;
    const cells = [
      String(instances),
      Math.round(rate).toLocaleString('en'),
      (rate / one).toFixed(2),
      micros(({ cpuSeconds }) => cpuSeconds.daemons).toFixed(0),
      micros(({ cpuSeconds }) => cpuSeconds.postgres).toFixed(0),
      `${(100 * of(busy)).toFixed(0)} %`,
      of(({ written, elapsedSeconds }) => written.commits / elapsedSeconds).toFixed(0),
      (of(({ written }) => written.fsyncs) / (schedules / 1000)).toFixed(1),
      (of(({ written }) => written.walBytes) / schedules).toFixed(0),
    ];
    if (herds.some(({ standby }) => standby)) cells.push(micros(({ cpuSeconds }) => cpuSeconds.standby).toFixed(0));
    return `| ${cells.join(' | ')} |`;
  });
  const head = [
    'instances',
    'fires/s',
    `× ${sizes[0] ?? ''}`,
    'CPU µs a fire: daemons',
    'PostgreSQL',
    'of all cores',
    'commits/s',
    'fsyncs per 1,000 fires',
    'WAL bytes a fire',
    ...(herds.some(({ standby }) => standby) ? ['CPU µs a fire: standby'] : []),
  ];
  return [
    `${title}; a commit of one row takes ${commitMs.p50.toFixed(2)} ms (p99 ${commitMs.p99.toFixed(2)} ms)`,
    `${schedules} schedules due at once, ${hostCount} hosts that answer after ${answerMs} ms, median of ${rounds} rounds`,
    '',
    `| ${head.join(' | ')} |`,
    `| ${head.map(() => '---:').join(' | ')} |`,
    ...rows,
  ].join('\n');
}

/** Share of this machine's cores that daemons and database had; the targets' own work is not in it. */
function busy({ cpuSeconds: { daemons, postgres, standby }, elapsedSeconds }: Herd): number | null {
  if (daemons === null || postgres === null) return null;
  return (daemons + postgres + (standby ?? 0)) / (elapsedSeconds * availableParallelism());
}
