import { type Bench, type Scenario, atLeast } from '../scenario.ts';
import { callApi } from '../../test/support/calls.ts';
import { startDaemonOf } from '../support/processes/daemon.ts';
import { type ScheduleItem, putSchedules } from '../support/schedules.ts';
import { median } from '../support/measures/statistics.ts';
import { startCpuMeter } from '../support/measures/vitals.ts';

const WAYS = [1, 3];
const MAX_ROUNDS = 5;

interface Import {
  callsAtOnce: number;
  schedules: number;
  seconds: number;
  schedulesPerSecond: number;
  cpuSeconds: { daemons: number | null; postgres: number | null };
}

export const importing: Scenario = {
  name: 'import',
  title: 'schedules created over the API, a thousand a call',
  run: async (bench) => {
    const count = bench.quick ? 5_000 : 100_000;
    const wanted = Math.min(bench.rounds, MAX_ROUNDS);
    const rounds: Import[][] = [];
    while (rounds.length < wanted) {
      const round: Import[] = [];
      for (const callsAtOnce of rounds.length % 2 === 0 ? WAYS : WAYS.toReversed()) {
        round.push(await importOnce(bench, count, callsAtOnce));
      }
      round.sort((a, b) => a.callsAtOnce - b.callsAtOnce);
      rounds.push(round);
      const rates = round.map((one) => `${rate(one.schedulesPerSecond)} by ${calls(one.callsAtOnce)}`);
      bench.log(`round ${rounds.length}: schedules/s: ${rates.join(', ')}`);
    }
    const of = (way: number, pick: (one: Import) => number | null) =>
      median(rounds.map((round) => pick(round[way] ?? missing()) ?? NaN));
    return {
      scenario: 'import',
      rounds: rounds.map((ways) => ({ ways })),
      table: {
        head: ['calls', 'schedules', 'schedules/s', 'time', 'CPU s: daemon', 'PostgreSQL'],
        rows: WAYS.map((callsAtOnce, way) => [
          calls(callsAtOnce),
          count.toLocaleString('en'),
          rate(of(way, (one) => one.schedulesPerSecond)),
          `${of(way, (one) => one.seconds).toFixed(1)} s`,
          of(way, (one) => one.cpuSeconds.daemons).toFixed(1),
          of(way, (one) => one.cpuSeconds.postgres).toFixed(1),
        ]),
      },
      bars: [
        atLeast(
          'schedules created',
          of(0, (one) => one.schedulesPerSecond),
          '/s',
          5_000,
        ),
      ],
      notes: [],
    };
  },
};

/** Into an empty database, by a daemon that has had two small batches: code is compiled, connections are open. */
async function importOnce(bench: Bench, count: number, callsAtOnce: number): Promise<Import> {
  const database = await bench.server.createDatabase();
  try {
    const daemon = await startDaemonOf(bench, database);
    try {
      await putSchedules(daemon.url, itemsOf('warm-up', 2_000, bench.receiver.url));
      await database.calm();
      const items = itemsOf('import', count, bench.receiver.url);
      const cpu = startCpuMeter(bench.server, [daemon.pid]);
      const startedAt = performance.now();
      await putSchedules(daemon.url, items, callsAtOnce);
      const seconds = (performance.now() - startedAt) / 1000;
      const cpuSeconds = cpu.read();
      const [row] = await database.query(
        `SELECT count(*)::int AS there FROM schedules WHERE id LIKE 'import-%' AND next_fire_at IS NOT NULL`,
      );
      if (row?.['there'] !== count) throw new Error(`${String(row?.['there'])} of ${count} schedules are there`);
      await callApi(`${daemon.url}/api/v1/schedules/import-${count - 1}`);
      return { callsAtOnce, schedules: count, seconds, schedulesPerSecond: count / seconds, cpuSeconds };
    } finally {
      await daemon.stop();
    }
  } finally {
    await database.drop();
  }
}

/** As from a crontab: each at a time of its own, in three zones, with labels and a payload. */
function itemsOf(prefix: string, count: number, url: string): ScheduleItem[] {
  const hour = new Date().getUTCHours();
  return Array.from({ length: count }, (_, index) => ({
    id: `${prefix}-${index}`,
    // Not within the hours of the benchmark, in any of the zones.
    cron: `${index % 60} ${(hour + 10 + (index % 5)) % 24} * * *`,
    timezone: ['UTC', 'Europe/Berlin', 'America/New_York'][index % 3],
    labels: { team: `team-${index % 50}` },
    payload: { customer: index },
    target: { type: 'http', url },
  }));
}

function missing(): never {
  throw new Error('a round is not complete');
}

function calls(atOnce: number): string {
  return atOnce === 1 ? 'one after the other' : `${atOnce} at once`;
}

function rate(value: number): string {
  return Math.round(value).toLocaleString('en');
}
