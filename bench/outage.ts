/**
 * What an outage of PostgreSQL leaves: it is stopped for a while under load, again and again. Measured from the moment at
 * which it takes connections again to the first arrival at the target of a fire, and to that of the last fire that was
 * due meanwhile. All of them must arrive, each once.
 *
 *     node bench/outage.ts [--rounds N] [--seconds N] [--rate N] [--json FILE]
 */
import { writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import postgres from 'postgres';
import { startCluster } from '../test/support/postgres/server.ts';
import type { Receiver } from '../test/support/receiver.ts';
import { until } from '../test/support/until.ts';
import { buildDaemon } from './support/processes/daemon.ts';
import { type Fleet, type Query, putLoad, startFleet, startSlowReceiver } from './support/processes/fleet.ts';
import { describeMachine } from './support/measures/machine.ts';
import { median } from './support/measures/statistics.ts';

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '60' },
    rate: { type: 'string', default: '50' },
    json: { type: 'string' },
  },
});
const [rounds, outageSeconds, rate] = [options.rounds, options.seconds, options.rate].map(Number) as [
  number,
  number,
  number,
];
if (![rounds, outageSeconds, rate].every((value) => value >= 1)) throw new Error('numbers from 1 are wanted');

const DAEMONS = 3;
const ANSWER_AFTER_MS = 20;
const BETWEEN_MS = 15_000;
const LIMIT_MS = 120_000;
const REQUIRED_MS = 3_000;

await run();

async function run(): Promise<void> {
  const build = buildDaemon();
  const cluster = await startCluster({ survivesCrashes: true });
  const receiver = await startSlowReceiver(ANSWER_AFTER_MS);
  try {
    const databaseUrl = await cluster.createDatabase();
    const query: Query = async (statement) => {
      const sql = postgres(databaseUrl, { max: 1 });
      try {
        return [...(await sql.unsafe(statement))];
      } finally {
        await sql.end({ timeout: 5 });
      }
    };
    const fleet = await startFleet(DAEMONS, { main: build.main, databaseUrl, query });
    try {
      const [first] = fleet.members;
      if (first) await putLoad(first.daemon, rate, receiver.url);
      const measured = [];
      while (measured.length < rounds) {
        await sleep(BETWEEN_MS);
        measured.push(await oneOutage({ cluster, receiver, query, fleet }));
      }
      report(measured);
    } finally {
      await fleet.stop();
    }
  } finally {
    await receiver.close();
    await cluster.stop();
    build.remove();
  }
}

interface Outage {
  firstMs: number;
  caughtUpMs: number;
}

interface Stage {
  cluster: Awaited<ReturnType<typeof startCluster>>;
  receiver: Receiver;
  query: Query;
  fleet: Fleet;
}

async function oneOutage({ cluster, receiver, query, fleet }: Stage): Promise<Outage> {
  await cluster.crash();
  await sleep(outageSeconds * 1000);
  const before = new Set(receiver.arrivals.map(({ body }) => body.runId));
  await cluster.restart();
  const back = Date.now();
  const backAt = new Date(back).toISOString();
  const first = await until(() => receiver.arrivals.find(({ body }) => !before.has(body.runId)) ?? null, LIMIT_MS);
  await until(async () => {
    const [row] = await query(`SELECT count(*)::int AS open FROM schedules WHERE next_occurrence_at < '${backAt}'`);
    const [runs] = await query(
      `SELECT count(*)::int AS open FROM all_runs WHERE scheduled_for < '${backAt}' AND status = 'pending'`,
    );
    return row?.['open'] === 0 && runs?.['open'] === 0 ? true : null;
  }, LIMIT_MS);
  const due = await query(`SELECT id, 1 + coalesced AS fires FROM all_runs WHERE scheduled_for < '${backAt}'
    AND scheduled_for > '${backAt}'::timestamptz - make_interval(secs => ${outageSeconds})`);
  const ids = new Set(due.map(({ id }) => String(id)));
  // Those that are more than a minute late by then are folded into others.
  const fires = due.reduce((sum, row) => sum + Number(row['fires']), 0);
  if (fires < rate * outageSeconds) throw new Error(`only ${fires} fires were planned for the outage`);
  const arrived = receiver.arrivals.filter(({ body }) => ids.has(body.runId));
  const last = Math.max(...arrived.map(({ at }) => at));
  const outage = { firstMs: first.at - back, caughtUpMs: last - back };
  const distinct = new Set(arrived.map(({ body }) => body.runId)).size;
  console.log(
    `first fire ${seconds(outage.firstMs)} after the return, the last of ${fires} missed ones (in ${ids.size} runs) after ` +
      `${seconds(outage.caughtUpMs)}; ${ids.size - distinct} lost, ${arrived.length - distinct} repeated`,
  );
  if (distinct !== ids.size) throw new Error('runs did not arrive');
  for (const { daemon } of fleet.members) process.kill(daemon.pid, 0);
  return outage;
}

function report(measured: readonly Outage[]): void {
  const firsts = measured.map(({ firstMs }) => firstMs);
  const last = measured.map(({ caughtUpMs }) => caughtUpMs);
  const met = Math.max(...firsts) <= REQUIRED_MS;
  console.log(
    `${DAEMONS} daemons, ${rate} fires/s, PostgreSQL away for ${outageSeconds} s, ${measured.length} times: first fire ` +
      `median ${seconds(median(firsts))}, worst ${seconds(Math.max(...firsts))} ` +
      `(required: ${seconds(REQUIRED_MS)}, ${met ? 'met' : 'NOT MET'}); caught up median ${seconds(median(last))}, ` +
      `worst ${seconds(Math.max(...last))}; no process ended`,
  );
  const machine = describeMachine();
  console.log(JSON.stringify(machine));
  if (options.json !== undefined) {
    writeFileSync(options.json, `${JSON.stringify({ machine, rate, outageSeconds, measured }, null, 2)}\n`);
  }
  if (!met) process.exitCode = 1;
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(2)} s`;
}
