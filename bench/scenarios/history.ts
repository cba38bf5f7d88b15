import { type Bar, type Bench, type Scenario, type ScenarioResult, atLeast, atMost } from '../scenario.ts';
import { startDaemonOf } from '../support/processes/daemon.ts';
import { type Drop, type DropSizes, dropADay } from '../support/history/history-drop.ts';
import { type Asked, askHistory } from '../support/history/history-lists.ts';
import { type Period, type SnapshotSizes, underOldSnapshot } from '../support/history/history-snapshot.ts';
import type { BenchDatabase } from '../support/processes/postgres.ts';
import { daysOf, seedHistory } from '../support/history/seed-history.ts';
import { median } from '../support/measures/statistics.ts';

interface HistorySizes {
  days: number;
  /** Each with 144 runs a day, beside one with 17,280. */
  schedules: number;
  drop: DropSizes;
  /** Days that are dropped, one after the other. */
  drops: number;
  everyMinute: SnapshotSizes;
  everySecond: SnapshotSizes;
}

const MINUTE_MS = 60_000;

const FULL: HistorySizes = {
  days: 30,
  schedules: 2_200,
  drop: { schedules: 500, seconds: 10, limitSeconds: 900 },
  drops: 5,
  everyMinute: {
    schedules: 3_000,
    cron: '* * * * *',
    periodMs: MINUTE_MS,
    normalPeriods: 5,
    heldPeriods: 10,
  },
  everySecond: {
    schedules: 1_000,
    cron: '* * * * * *',
    periodMs: MINUTE_MS,
    normalPeriods: 2,
    heldPeriods: 10,
  },
};

const QUICK: HistorySizes = {
  days: 4,
  schedules: 50,
  drop: { schedules: 20, seconds: 3, limitSeconds: 60 },
  drops: 1,
  everyMinute: { schedules: 200, cron: '*/5 * * * * *', periodMs: 5_000, normalPeriods: 2, heldPeriods: 4 },
  everySecond: { schedules: 50, cron: '* * * * * *', periodMs: 5_000, normalPeriods: 1, heldPeriods: 4 },
};

export const history: Scenario = {
  name: 'history',
  title: 'ten million runs kept: lists, figures, a day dropped, and an old snapshot',
  run: (bench) => runHistory(bench, bench.quick ? QUICK : sizesOf(bench)),
};

function sizesOf({ rounds, holdMinutes: heldPeriods }: Bench): HistorySizes {
  const { drops, everyMinute, everySecond } = FULL;
  const held = (sizes: SnapshotSizes) => ({
    ...sizes,
    heldPeriods,
    normalPeriods: Math.min(sizes.normalPeriods, heldPeriods),
  });
  return {
    ...FULL,
    drops: Math.min(drops, rounds),
    everyMinute: held(everyMinute),
    everySecond: held(everySecond),
  };
}

async function runHistory(bench: Bench, sizes: HistorySizes): Promise<ScenarioResult> {
  const database = await bench.server.createDatabase();
  const days = daysOf(sizes.days);
  try {
    const { runs, seconds, asked } = await seedAndAsk(bench, database, days, sizes);
    const drops: Drop[] = [];
    for (const day of days.slice(0, sizes.drops)) {
      const drop = await dropADay(bench, database, day, sizes.drop);
      drops.push(drop);
      bench.log(dropSummary(drop));
    }
    const everyMinute = await underOldSnapshot(bench, database, sizes.everyMinute);
    bench.log(`every minute: ${periodsSummary(everyMinute, ({ herdSeconds }) => `${herdSeconds.toFixed(2)} s`)}`);
    const everySecond = await underOldSnapshot(bench, database, sizes.everySecond);
    bench.log(`every second: ${periodsSummary(everySecond, ({ latenessMs }) => ms(latenessMs.p99))}`);
    return {
      scenario: 'history',
      rounds: [{ runs, seconds, asked, drops, everyMinute, everySecond }],
      table: tableOf({ runs, asked, drops, everyMinute, everySecond }),
      bars: barsOf({ asked, drops, everyMinute }),
      notes: [`${runs.toLocaleString('en')} runs written in ${seconds.toFixed(0)} s`, ...notesOf(asked, everySecond)],
    };
  } finally {
    await database.drop();
  }
}

async function seedAndAsk(
  bench: Bench,
  database: BenchDatabase,
  days: readonly number[],
  { schedules }: HistorySizes,
): Promise<{ runs: number; seconds: number; asked: Asked[] }> {
  const daemon = await startDaemonOf(bench, database, { FIRELOCK_RETENTION_DAYS: '3650' });
  try {
    const startedAt = performance.now();
    const log = (line: string) => bench.log(line);
    await seedHistory(database, daemon.url, { days, schedules, url: bench.receiver.url, log });
    const seconds = (performance.now() - startedAt) / 1000;
    await database.calm();
    const [row] = await database.query('SELECT count(*)::int AS runs FROM all_runs');
    const runs = Number(row?.['runs']);
    log(`${runs.toLocaleString('en')} runs written in ${seconds.toFixed(0)} s`);
    const asked = await askHistory(daemon.url, days);
    for (const one of asked) log(askedSummary(one));
    return { runs, seconds, asked };
  } finally {
    await daemon.stop();
  }
}

interface Measured {
  runs: number;
  asked: readonly Asked[];
  drops: readonly Drop[];
  everyMinute: readonly Period[];
  everySecond: readonly Period[];
}

function tableOf({ runs, asked, drops, everyMinute, everySecond }: Measured): ScenarioResult['table'] {
  const of = (kind: Asked['kind']) => asked.filter((one) => one.kind === kind);
  const slowest = (kind: Asked['kind']) => {
    const found = slowestOf(of(kind));
    return `${ms(found.ms)} (${found.what})`;
  };
  const { normal, held } = split(everyMinute);
  const seconds = split(everySecond);
  const p99 = (periods: readonly Period[]) => ms(median(periods.map(({ latenessMs }) => latenessMs.p99)));
  const herd = (periods: readonly Period[]) => `${median(periods.map(({ herdSeconds }) => herdSeconds)).toFixed(2)} s`;
  return {
    head: [`${runs.toLocaleString('en')} runs`, 'median', 'slowest, or worst'],
    rows: [
      ['first page of a list', ms(median(of('list').map((one) => one.ms))), slowest('list')],
      ['/stats of a day', ms(median(of('stats of a day').map((one) => one.ms))), slowest('stats of a day')],
      ['other /stats', ms(median(of('other stats').map((one) => one.ms))), slowest('other stats')],
      ['dropping a day', ms(median(drops.map(dropMs))), ms(Math.max(...drops.map(dropMs)))],
      ['… what it adds to p99 lateness', ms(addedByDrop(drops)), ms(Math.max(...drops.map(added)))],
      [`${everyMinute[0]?.fires ?? 0} due at once, as ever`, herd(normal), worstHerd(normal)],
      ['… under an old snapshot', herd(held), worstHerd(held)],
      ['every second: p99 lateness, as ever', p99(seconds.normal), worstP99(seconds.normal)],
      ['… under an old snapshot', p99(seconds.held), worstP99(seconds.held)],
    ],
  };
}

function barsOf({ asked, drops, everyMinute }: Omit<Measured, 'runs' | 'everySecond'>): Bar[] {
  const slowest = (kind: Asked['kind']) => slowestOf(asked.filter((one) => one.kind === kind));
  const [list, stats] = [slowest('list'), slowest('stats of a day')];
  const { normal, held } = split(everyMinute);
  // What is left behind grows: the second half counts.
  const late = held.slice(Math.floor(held.length / 2));
  const time = (periods: readonly Period[]) => median(periods.map(({ herdSeconds }) => herdSeconds));
  return [
    atMost(`first page of the slowest list (${list.what})`, list.ms, 'ms', 50),
    atMost(`/stats of a day, slowest (${stats.what})`, stats.ms, 'ms', 200),
    atMost('dropping a day', median(drops.map(dropMs)), 'ms', 1_000),
    atMost('p99 lateness that dropping a day adds', addedByDrop(drops), 'ms', 50),
    atLeast('throughput under an old snapshot / without', time(normal) / time(late), '×', 0.9),
  ];
}

function notesOf(asked: readonly Asked[], everySecond: readonly Period[]): string[] {
  const slow = asked.filter(
    (one) => one.ms > (one.kind === 'list' ? 50 : one.kind === 'stats of a day' ? 200 : Infinity),
  );
  const cpu = (periods: readonly Period[]) =>
    median(
      periods.map(
        ({ cpuSeconds, fires }) => (((cpuSeconds.daemons ?? NaN) + (cpuSeconds.postgres ?? NaN)) * 1000) / fires,
      ),
    ).toFixed(3);
  const { normal, held } = split(everySecond);
  return [
    ...slow.map((one) => `slower than it should be: ${askedSummary(one)}`),
    `every-second schedules, CPU s per 1,000 fires: ${cpu(normal)} as ever, ${cpu(held)} under an old snapshot, ` +
      `${cpu(held.slice(-1))} in its last minute`,
    `missing of them: ${everySecond.reduce((sum, { missing }) => sum + missing, 0)}`,
  ];
}

function slowestOf(asked: readonly Asked[]): Asked {
  const slowest = asked.toSorted((a, b) => b.ms - a.ms)[0];
  if (!slowest) throw new Error('nothing was asked');
  return slowest;
}

/** Dropped whole it is one transaction; else from its first run to its last. One too short to be seen is one look. */
function dropMs({ seenMs, goneWithinMs }: Drop): number {
  return Math.max(seenMs ?? 0, goneWithinMs ?? Infinity);
}

function added({ p99Ms }: Drop): number {
  return p99Ms.with - p99Ms.without;
}

function addedByDrop(drops: readonly Drop[]): number {
  return median(drops.map(added));
}

function split(periods: readonly Period[]): { normal: Period[]; held: Period[] } {
  return { normal: periods.filter(({ held }) => !held), held: periods.filter(({ held }) => held) };
}

function worstHerd(periods: readonly Period[]): string {
  return `${Math.max(...periods.map(({ herdSeconds }) => herdSeconds)).toFixed(2)} s`;
}

function worstP99(periods: readonly Period[]): string {
  return ms(Math.max(...periods.map(({ latenessMs }) => latenessMs.p99)));
}

function askedSummary({ what, ms: taken, coldMs, items, status }: Asked): string {
  const answer = status === 200 ? (items === null ? '' : `, ${items} items`) : `, answered ${status}`;
  return `${what}: ${ms(taken)} (first call ${ms(coldMs)}${answer})`;
}

function dropSummary(drop: Drop): string {
  const { day, runs, seenMs, goneWithinMs, goneAfterMs, p99Ms, worstMs } = drop;
  const transaction = seenMs === null ? 'no transaction seen' : `a transaction of ${ms(seenMs)} seen`;
  return (
    `${day} with ${runs.toLocaleString('en')} runs dropped within ${ms(goneWithinMs ?? NaN)} (${transaction}), ` +
    `${ms(goneAfterMs ?? NaN)} after the start of the daemon that did it; p99 ${ms(p99Ms.with)} ` +
    `(longest ${ms(worstMs.with)}), otherwise ${ms(p99Ms.without)} (${ms(worstMs.without)})`
  );
}

function periodsSummary(periods: readonly Period[], describe: (period: Period) => string): string {
  const { normal, held } = split(periods);
  return `${normal.map(describe).join(', ')}; under an old snapshot ${held.map(describe).join(', ')}`;
}

function ms(value: number): string {
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;
}
