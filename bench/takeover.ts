/**
 * How long what a daemon leaves is left: one of three daemons is killed, or asked to leave, again and again under load.
 * Measured at the target, from the signal to the arrival of what the daemon had claimed.
 *
 *     npm run takeover -- [--rounds N] [--rate N] [--json FILE]
 */
import { writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { Receiver } from '../test/support/receiver.ts';
import { until } from '../test/support/until.ts';
import { buildDaemon } from './support/processes/daemon.ts';
import {
  type Fleet,
  type Member,
  type Query,
  afterSecond,
  putLoad,
  startFleet,
  startSlowReceiver,
} from './support/processes/fleet.ts';
import { describeMachine } from './support/measures/machine.ts';
import { type Server, openServer } from './support/processes/postgres.ts';
import { median } from './support/measures/statistics.ts';

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '10' },
    rate: { type: 'string', default: '50' },
    json: { type: 'string' },
  },
});
const rounds = Number(options.rounds);
const rate = Number(options.rate);
if (!(rounds >= 1) || !(rate >= 1)) throw new Error('--rounds and --rate must be numbers from 1');

const DAEMONS = 3;
const ANSWER_AFTER_MS = 200;
/** After a whole second: its fires are claimed, and the first of them are not answered yet. */
const IN_THE_MIDDLE_MS = 120;
const LIMIT_MS = 60_000;
/** As long as a daemon must have beaten before it declares others dead, and some more. */
const SETTLING_MS = 11_000;

type Signal = 'SIGKILL' | 'SIGTERM';

interface Plan {
  title: string;
  signal: Signal;
  requiredMs: number;
  variables: Record<string, string>;
}

interface Round {
  /** Runs that the daemon left to the others. */
  claims: number;
  firstMs: number;
  lastMs: number;
}

interface Stage {
  server: Server;
  main: string;
  receiver: Receiver;
}

/** With the default of 64 handoffs at once to a host nothing of such a load waits unsent, to be handed back. */
const PLANS: Plan[] = [
  { title: 'kill -9, default settings', signal: 'SIGKILL', requiredMs: 15_000, variables: {} },
  {
    title: 'SIGTERM, 16 handoffs at once to a host',
    signal: 'SIGTERM',
    requiredMs: 1_000,
    variables: { FIRELOCK_DISPATCH_PER_HOST: '16' },
  },
];

await run();

async function run(): Promise<void> {
  const build = buildDaemon();
  const server = await openServer();
  const receiver = await startSlowReceiver(ANSWER_AFTER_MS);
  try {
    const machine = { ...describeMachine(), postgres: server.version, durability: server.durability };
    console.log(JSON.stringify(machine));
    const results = [];
    for (const plan of PLANS) {
      const measured = await runPlan(plan, { server, main: build.main, receiver });
      results.push(summaryOf(plan, measured));
    }
    const report = { machine, daemons: DAEMONS, firesPerSecond: rate, targetMs: ANSWER_AFTER_MS, results };
    if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify(report, null, 2)}\n`);
    if (results.some(({ met }) => !met)) process.exitCode = 1;
  } finally {
    await receiver.close();
    await server.stop();
    build.remove();
  }
}

async function runPlan(plan: Plan, { server, main, receiver }: Stage): Promise<Round[]> {
  const database = await server.createDatabase();
  const query: Query = (statement) => database.query(statement);
  const { variables } = plan;
  const fleet = await startFleet(DAEMONS, { variables, main, databaseUrl: database.url, query });
  try {
    const [first] = fleet.members;
    if (first) await putLoad(first.daemon, rate, receiver.url);
    const measured: Round[] = [];
    while (measured.length < rounds) {
      await sleep(plan.signal === 'SIGKILL' ? SETTLING_MS : 1_000);
      const round = await endOne(plan.signal, fleet, receiver, query);
      await fleet.add();
      if (round.claims === 0) continue;
      measured.push(round);
      console.log(
        `${plan.title}: ${round.claims} runs, first after ${seconds(round.firstMs)}, last after ${seconds(round.lastMs)}`,
      );
    }
    return measured;
  } finally {
    await fleet.stop();
    await database.drop();
  }
}

/** Ends the daemon that has most to lose at the moment, and waits until all of that has arrived. */
async function endOne(signal: Signal, fleet: Fleet, receiver: Receiver, query: Query): Promise<Round> {
  await afterSecond(IN_THE_MIDDLE_MS);
  const victim = await busiest(fleet, query);
  const before = signal === 'SIGTERM' ? await unsentOf(victim, receiver, query) : [];
  const at = Date.now();
  const gone = victim.daemon.end(signal);
  fleet.members.splice(fleet.members.indexOf(victim), 1);
  if (signal === 'SIGKILL') await gone;
  const left = signal === 'SIGKILL' ? await claimsOf(victim, query) : before;
  await until(
    () => left.every((id) => receiver.arrivals.some((one) => one.body.runId === id && one.at > at)) || null,
    LIMIT_MS,
  );
  await gone;
  const others = signal === 'SIGKILL' ? left : await doneByOthers(left, victim, query);
  const arrived = receiver.arrivals.filter((one) => one.at > at && others.includes(one.body.runId));
  const firsts = Map.groupBy(arrived, ({ body }) => body.runId)
    .values()
    .map((own) => Math.min(...own.map((one) => one.at)) - at)
    .toArray();
  receiver.arrivals.splice(0);
  return { claims: others.length, firstMs: Math.min(...firsts), lastMs: Math.max(...firsts) };
}

async function busiest(fleet: Fleet, query: Query): Promise<Member> {
  const [row] = await query(`SELECT claimed_by FROM all_runs WHERE status = 'pending' AND claimed_by IS NOT NULL
    GROUP BY claimed_by ORDER BY count(*) DESC LIMIT 1`);
  const found = fleet.members.find(({ instanceId }) => instanceId === row?.['claimed_by']) ?? fleet.members[0];
  if (!found) throw new Error('no daemon is left');
  return found;
}

async function claimsOf({ instanceId }: Member, query: Query): Promise<string[]> {
  const rows = await query(`SELECT id FROM all_runs WHERE status = 'pending' AND claimed_by IS NOT NULL
    AND claimed_by = '${instanceId}'`);
  return rows.map(({ id }) => String(id));
}

async function unsentOf(victim: Member, receiver: Receiver, query: Query): Promise<string[]> {
  const claims = await claimsOf(victim, query);
  return claims.filter((id) => !receiver.arrivals.some(({ body }) => body.runId === id));
}

async function doneByOthers(ids: readonly string[], { instanceId }: Member, query: Query): Promise<string[]> {
  if (ids.length === 0) return [];
  const list = ids.map((id) => `'${id}'`).join(', ');
  const rows = await query(`SELECT id FROM all_runs WHERE claimed_by <> '${instanceId}' AND id IN (${list})`);
  return rows.map(({ id }) => String(id));
}

function summaryOf({ title, requiredMs }: Plan, measured: readonly Round[]) {
  const figures = (values: readonly number[]) => ({ median: median(values), worst: Math.max(...values) });
  const first = figures(measured.map(({ firstMs }) => firstMs));
  const last = figures(measured.map(({ lastMs }) => lastMs));
  const met = last.worst <= requiredMs;
  console.log(
    `${title}, ${measured.length} times: first median ${seconds(first.median)}, worst ${seconds(first.worst)}; ` +
      `last median ${seconds(last.median)}, worst ${seconds(last.worst)} ` +
      `(required: ${seconds(requiredMs)}, ${met ? 'met' : 'NOT MET'})`,
  );
  return { title, first, last, requiredMs, met, rounds: measured };
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(2)} s`;
}
