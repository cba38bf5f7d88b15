import { setTimeout as sleep } from 'node:timers/promises';
import { type Bench, type Scenario, type ScenarioResult, atMost } from '../scenario.ts';
import { startDaemonOf } from '../support/daemon-of-bench.ts';
import { type Hosts, latenessOf, startHosts } from '../support/hosts.ts';
import { putSchedules } from '../support/schedules.ts';
import { median, percentile } from '../support/statistics.ts';
import { nextWhole, sleepUntil, startCpuMeter } from '../support/vitals.ts';

const HOSTS = 20;
const HANGING = 0;
/** Of the target: how long the one that hangs holds a slot. */
const TIMEOUT_SECONDS = 10;
/** In the end nobody waits for what hangs, and that it is cut off is no news. */
const VARIABLES = { FIRELOCK_SHUTDOWN_SECONDS: '1', LOG_LEVEL: 'error' };
const MOST_ROUNDS = 5;
/** The ratio or, where that is more, so many milliseconds. */
const ALLOWED = { ratio: 1.2, ms: 50 };

interface Sizes {
  firesPerSecondOfHost: number;
  /** Before the measured period: as long as it takes until all slots of the slow one hang, and its attempts time out. */
  settleSeconds: number;
  seconds: number;
}

interface Period {
  /** Of all hosts but the one that hangs, or will. */
  latenessMs: { p50: number; p99: number; max: number };
  fires: number;
  cpuSeconds: { daemons: number | null; postgres: number | null };
}

interface Round {
  well: Period;
  oneHangs: Period;
}

export const slowTargets: Scenario = {
  name: 'slow-targets',
  title: 'one of twenty hosts takes requests and never answers: lateness at the others',
  run: async (bench) => {
    const sizes = bench.quick
      ? { firesPerSecondOfHost: 5, settleSeconds: 4, seconds: 4 }
      : { firesPerSecondOfHost: 50, settleSeconds: TIMEOUT_SECONDS + 5, seconds: 20 };
    const rounds: Round[] = [];
    const wanted = Math.min(bench.rounds, MOST_ROUNDS);
    while (rounds.length < wanted) {
      const isEven = rounds.length % 2 === 0;
      const first = await onePeriod(bench, sizes, !isEven);
      const second = await onePeriod(bench, sizes, isEven);
      const round = isEven ? { well: first, oneHangs: second } : { well: second, oneHangs: first };
      rounds.push(round);
      const [before, after] = [round.well.latenessMs.p99, round.oneHangs.latenessMs.p99];
      bench.log(`round ${rounds.length}: p99 ${ms(before)} when all are well, ${ms(after)} when one hangs`);
    }
    return resultOf(rounds, sizes);
  },
};

/** A daemon and a database of their own, so that nobody begins with what another one left undone. */
async function onePeriod(bench: Bench, sizes: Sizes, oneHangs: boolean): Promise<Period> {
  const hosts = await startHosts(HOSTS);
  try {
    if (oneHangs) hosts.silence(HANGING);
    const database = await bench.server.createDatabase();
    try {
      const daemon = await startDaemonOf(bench, database, VARIABLES);
      try {
        await putSchedules(daemon.url, itemsOf(hosts, sizes));
        await sleep(sizes.settleSeconds * 1000);
        return await measure(bench, sizes, hosts, daemon.pid);
      } finally {
        await daemon.stop();
      }
    } finally {
      await database.drop();
    }
  } finally {
    await hosts.stop();
  }
}

async function measure(bench: Bench, sizes: Sizes, hosts: Hosts, pid: number): Promise<Period> {
  const from = nextWhole(1000, 0);
  await sleepUntil(from - 1);
  await hosts.take();
  const cpu = startCpuMeter(bench.server, [pid]);
  const to = from + sizes.seconds * 1000;
  await sleepUntil(to - 1);
  const cpuSeconds = cpu.read();
  // What was due by then and comes late belongs to it.
  const expected = (HOSTS - 1) * sizes.firesPerSecondOfHost * sizes.seconds;
  const fires = await hosts.take();
  const isOther = (host: number) => host !== HANGING;
  let lateness = latenessOf(fires, { from, to }, isOther);
  for (let waited = 0; lateness.length < expected && waited < LATEST_MS; waited += POLL_MS) {
    await sleep(POLL_MS);
    lateness = [...lateness, ...latenessOf(await hosts.take(), { from, to }, isOther)];
  }
  if (lateness.length !== expected)
    throw new Error(`${lateness.length} instead of ${expected} fires arrived`);
  return {
    latenessMs: {
      p50: percentile(lateness, 0.5),
      p99: percentile(lateness, 0.99),
      max: percentile(lateness, 1),
    },
    fires: lateness.length,
    cpuSeconds,
  };
}

const POLL_MS = 200;
const LATEST_MS = 30_000;

function itemsOf(hosts: Hosts, { firesPerSecondOfHost }: Sizes) {
  return hosts.urls.flatMap((url, host) =>
    Array.from({ length: firesPerSecondOfHost }, (_, index) => ({
      id: `host-${host}-${index}`,
      cron: '* * * * * *',
      timeoutSeconds: TIMEOUT_SECONDS,
      target: { type: 'http', url },
    })),
  );
}

function resultOf(rounds: readonly Round[], sizes: Sizes): ScenarioResult {
  const well = median(rounds.map((round) => round.well.latenessMs.p99));
  const oneHangs = median(rounds.map((round) => round.oneHangs.latenessMs.p99));
  const more = median(rounds.map((round) => round.oneHangs.latenessMs.p99 - round.well.latenessMs.p99));
  // 20 % of what is a few milliseconds is nothing that can be told from noise.
  const allowed = Math.max(ALLOWED.ms, (ALLOWED.ratio - 1) * well);
  const row = (title: string, pick: (round: Round) => Period) => {
    const of = (value: (period: Period) => number) => median(rounds.map((round) => value(pick(round))));
    return [
      title,
      ms(of(({ latenessMs }) => latenessMs.p50)),
      ms(of(({ latenessMs }) => latenessMs.p99)),
      ms(of(({ latenessMs }) => latenessMs.max)),
      of(
        ({ cpuSeconds, fires }) =>
          (((cpuSeconds.daemons ?? NaN) + (cpuSeconds.postgres ?? NaN)) * 1000) / fires,
      ).toFixed(3),
    ];
  };
  return {
    scenario: 'slow-targets',
    rounds: rounds.map((round) => ({ ...round })),
    table: {
      head: [
        `${HOSTS - 1} hosts, ${sizes.firesPerSecondOfHost} fires/s each`,
        'lateness p50',
        'p99',
        'longest',
        'CPU s per 1,000 of their fires',
      ],
      rows: [
        row('beside one that is well', ({ well: period }) => period),
        row('beside one that hangs', (round) => round.oneHangs),
      ],
    },
    bars: [atMost('p99 lateness that one that hangs adds at the others', more, 'ms', allowed)],
    notes: [`p99 when one hangs / when all are well: ${(oneHangs / well).toFixed(2)} ×`],
  };
}

function ms(value: number): string {
  return `${Math.round(value)} ms`;
}
