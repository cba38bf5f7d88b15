/**
 * The herd: many schedules due in the same second, to a local receiver that answers at once, beside what the same
 * machine does without firelock. docs/performance.md says what is measured and how.
 *
 *     npm run bench -- [--schedules N] [--rounds N] [--only NAME,…] [--json FILE] [--profile DIRECTORY]
 */
import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { startBare } from './bare/contestant.ts';
import type { Contestant } from './contestant.ts';
import { startFirelock } from './firelock.ts';
import { type Measured, runHerd } from './herd.ts';
import { print, reportOf } from './report.ts';
import { type Build, buildDaemon } from './support/build.ts';
import { describeMachine } from './support/machine.ts';
import { type BenchDatabase, type Server, openServer } from './support/postgres.ts';
import { type Receiver, startReceiver } from './support/receiver.ts';

const NAMES = ['posts', 'sql', 'pipeline', 'firelock'] as const;
type Name = (typeof NAMES)[number];

const { values: options } = parseArgs({
  options: {
    schedules: { type: 'string', default: '10000' },
    rounds: { type: 'string', default: '3' },
    /** Some of: posts, sql, pipeline, firelock. */
    only: { type: 'string', default: NAMES.join(',') },
    json: { type: 'string' },
    /** Where the daemon leaves a CPU profile of each round. */
    profile: { type: 'string' },
  },
});

const schedules = wholeNumber('schedules');
const rounds = wholeNumber('rounds');
const wanted = NAMES.filter((name) => options.only.split(',').includes(name));
/** Of the daemon to one host, and of the bare loops. */
const connections = Number(process.env['FIRELOCK_DISPATCH_PER_HOST'] ?? 64);
/** A herd that is not counted goes first: everybody's code is compiled and their connections are open. */
const warmUp = Math.min(1000, schedules);

await run();

async function run(): Promise<void> {
  const build = wanted.includes('firelock') ? buildDaemon() : null;
  const server = await openServer();
  const receiver = await startReceiver();
  try {
    const measured = await runRounds({ build, server, receiver });
    const machine = { ...describeMachine(), postgres: server.version, durability: server.durability };
    const report = reportOf({ machine, schedules, connections, rounds: measured });
    console.log(`\n${print(report)}`);
    if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify(report, null, 2)}\n`);
  } finally {
    await receiver.stop();
    await server.stop();
    build?.remove();
  }
}

interface Bench {
  build: Build | null;
  server: Server;
  receiver: Receiver;
}

/** Forwards and backwards in turn, so that nobody always comes first. */
async function runRounds(bench: Bench): Promise<Record<string, Measured[]>> {
  const measured: Record<string, Measured[]> = {};
  for (let round = 1; round <= rounds; round += 1) {
    for (const name of round % 2 === 1 ? wanted : wanted.toReversed()) {
      const { title, result } = await runOne(name, bench);
      (measured[title] ??= []).push(result);
      console.log(
        `round ${round}: ${title} ${Math.round(result.firesPerSecond).toLocaleString('en')} fires/s`,
      );
    }
  }
  return measured;
}

async function runOne(name: Name, bench: Bench): Promise<{ title: string; result: Measured }> {
  const database = await bench.server.createDatabase();
  try {
    const contestant = await start(name, bench, database);
    try {
      const stage = { ...bench, database };
      await runHerd(contestant, stage, warmUp);
      return { title: contestant.name, result: await runHerd(contestant, stage, schedules) };
    } finally {
      await contestant.stop();
    }
  } finally {
    await database.drop();
  }
}

function start(name: Name, { build, receiver }: Bench, database: BenchDatabase): Promise<Contestant> {
  const targetUrl = receiver.url;
  if (name !== 'firelock')
    return startBare(name, { databaseUrl: database.url, targetUrl, connections }, database);
  if (build === null) throw new Error('there is no daemon to start');
  const { profile } = options;
  const nodeOptions = profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${resolve(profile)}`];
  return startFirelock({ main: build.main, database, targetUrl, nodeOptions });
}

function wholeNumber(name: 'schedules' | 'rounds'): number {
  const value = Number(options[name]);
  if (!Number.isInteger(value) || value < 1) throw new Error(`--${name} must be a whole number from 1`);
  return value;
}
