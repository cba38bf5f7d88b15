/**
 * The benchmark: one scenario after the other, each beside what the same machine does without firelock. bench/README.md
 * says what is measured and how.
 *
 *     npm run bench -- [--only NAME,…] [--rounds N] [--postgres MAJOR|URL] [--peers] [--quick]
 *                  [--hold-minutes N] [--json FILE] [--profile DIRECTORY]
 */
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { openPeers } from './peers/peers.ts';
import { type Report, printBars, printMachine, printResult } from './report.ts';
import type { Bench, Scenario } from './scenario.ts';
import { dashboard } from './scenarios/dashboard.ts';
import { herd, herdInstances } from './scenarios/herd.ts';
import { history } from './scenarios/history.ts';
import { idle } from './scenarios/idle.ts';
import { importing } from './scenarios/importing.ts';
import { oneOff } from './scenarios/one-off.ts';
import { pings } from './scenarios/pings.ts';
import { slowTargets } from './scenarios/slow-targets.ts';
import { steady } from './scenarios/steady.ts';
import { buildDaemon } from './support/processes/daemon.ts';
import { describeMachine } from './support/measures/machine.ts';
import { type Server, openServer } from './support/processes/postgres.ts';
import { startReceiver } from './support/processes/receiver.ts';

const SCENARIOS: readonly Scenario[] = [
  herd,
  herdInstances,
  steady,
  oneOff,
  idle,
  slowTargets,
  pings,
  importing,
  history,
  dashboard,
];

const { values: options } = parseArgs({
  options: {
    /** Names of scenarios, separated by commas. */
    only: { type: 'string' },
    rounds: { type: 'string', default: '5' },
    /** A major version, or the URL of a server that runs; else DATABASE_URL, or the embedded one. */
    postgres: { type: 'string' },
    /** Others that do the same, installed for the run. */
    peers: { type: 'boolean', default: false },
    /** Small sizes, to see that all works. */
    quick: { type: 'boolean', default: false },
    /** For how long a transaction keeps its snapshot, in the history. */
    'hold-minutes': { type: 'string', default: '10' },
    json: { type: 'string' },
    /** Where each daemon leaves a CPU profile. */
    profile: { type: 'string' },
  },
});

const rounds = wholeNumber('rounds');
const holdMinutes = wholeNumber('hold-minutes');

await run(wantedScenarios());

async function run(wanted: readonly Scenario[]): Promise<void> {
  const build = buildDaemon();
  const server = await openServer(options.postgres);
  const receiver = await startReceiver();
  const report = newReport(server);
  try {
    console.log(printMachine(report));
    if (options.quick) console.log('--quick: sizes are small, and the figures mean nothing.');
    const peers = options.peers ? await openPeers(server, log) : null;
    try {
      const { quick, profile = null } = options;
      const bench = { server, main: build.main, receiver, rounds, holdMinutes, quick, peers, profile, log };
      for (const scenario of wanted) await runOne(scenario, bench, report);
    } finally {
      await peers?.stop();
    }
    console.log(`\n# All bars\n${printBars(report)}`);
    const missed = report.scenarios.some(({ bars }) => bars.some(({ met }) => !met));
    if (Object.keys(report.failed).length > 0 || (missed && !options.quick)) process.exitCode = 1;
  } finally {
    await receiver.stop();
    await server.stop();
    build.remove();
  }
}

/** One that fails does not take the others' results with it. */
async function runOne(scenario: Scenario, bench: Bench, report: Report): Promise<void> {
  console.log(`\n# ${scenario.name}: ${scenario.title}`);
  const startedAt = performance.now();
  try {
    const result = await scenario.run(bench);
    report.scenarios.push({ ...result, seconds: Math.round((performance.now() - startedAt) / 1000) });
    console.log(`\n${printResult(result)}`);
  } catch (error) {
    console.error(error);
    report.failed[scenario.name] = String(error);
  }
  if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify(report, null, 2)}\n`);
}

function wantedScenarios(): readonly Scenario[] {
  if (options.only === undefined) return SCENARIOS;
  return options.only.split(',').map((name) => {
    const found = SCENARIOS.find((scenario) => scenario.name === name);
    if (!found) throw new Error(`no scenario ${name}; there are ${SCENARIOS.map((one) => one.name).join(', ')}`);
    return found;
  });
}

function newReport({ version, durability }: Server): Report {
  const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
    version: string;
  };
  return {
    startedAt: new Date().toISOString(),
    machine: { ...describeMachine(), postgres: version, durability },
    firelock: { version: manifest.version, commit: commit() },
    options: { ...options, postgres: withoutPassword(options.postgres), rounds },
    variables: Object.fromEntries(
      Object.entries(process.env).filter(
        (one): one is [string, string] => one[0].startsWith('FIRELOCK_') && !/KEY|TOKEN/.test(one[0]),
      ),
    ),
    scenarios: [],
    failed: {},
  };
}

function withoutPassword(postgres: string | undefined): string | undefined {
  if (postgres === undefined || !URL.canParse(postgres)) return postgres;
  const url = new URL(postgres);
  url.password = '';
  return url.href;
}

/** Null outside of a clone. */
function commit(): string | null {
  const { status, stdout } = spawnSync('git', ['describe', '--always', '--dirty'], {
    cwd: import.meta.dirname,
    encoding: 'utf8',
  });
  return status === 0 ? stdout.trim() : null;
}

function log(line: string): void {
  console.log(line);
}

function wholeNumber(name: 'rounds' | 'hold-minutes'): number {
  const value = Number(options[name]);
  if (!Number.isInteger(value) || value < 1) throw new Error(`--${name} must be a whole number from 1`);
  return value;
}
