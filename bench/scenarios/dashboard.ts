import { spawnSync } from 'node:child_process';
import { cpSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type Bench, type Scenario, type ScenarioResult, atMost } from '../scenario.ts';
import { type ListedPage, askRecentRuns, visitsOf } from '../support/dashboard/visits.ts';
import { type PageCall, lookAtPages } from '../support/dashboard/look.ts';
import { daysOf, seedHistory } from '../support/history/seed-history.ts';
import { startDaemonOf } from '../support/processes/daemon.ts';
import type { BenchDatabase } from '../support/processes/postgres.ts';

const root = join(import.meta.dirname, '..', '..');

interface Sizes {
  days: number;
  /** Each with 144 runs a day. */
  small: number;
  /** Each with one. */
  daily: number;
  visits: number;
}

const FULL: Sizes = { days: 30, small: 1_550, daily: 98_449, visits: 9 };
const QUICK: Sizes = { days: 3, small: 20, daily: 2_000, visits: 1 };

export const dashboard: Scenario = {
  name: 'dashboard',
  title: 'every call that the pages of the dashboard make, over 100,000 schedules and 10 million runs',
  run: async (bench) => {
    const sizes = { ...(bench.quick ? QUICK : FULL), visits: bench.quick ? QUICK.visits : bench.rounds };
    const database = await bench.server.createDatabase();
    try {
      return await measure(bench, database, sizes);
    } finally {
      await database.drop();
    }
  },
};

async function measure(bench: Bench, database: BenchDatabase, sizes: Sizes): Promise<ScenarioResult> {
  buildPages(bench);
  const daemon = await startDaemonOf(bench, database, { FIRELOCK_RETENTION_DAYS: '3650' });
  try {
    const runs = await seed(bench, { database, url: daemon.url }, sizes);
    const lists = await askRecentRuns(daemon.url);
    for (const one of lists) bench.log(`${one.what}: ${ms(one.medianMs)}, worst ${ms(one.worstMs)}`);
    const calls = await lookAtPages(daemon.url, await visitsOf(daemon.url), sizes.visits);
    for (const one of calls)
      bench.log(`${one.page}: ${one.call}: ${one.calls} × ${ms(one.medianMs)}, worst ${ms(one.worstMs)}`);
    return resultOf({ runs, schedules: sizes.small + sizes.daily + 1, lists, calls });
  } finally {
    await daemon.stop();
  }
}

/** Beside the daemon that is measured. */
function buildPages({ main }: Bench): void {
  const script = join(root, 'scripts', 'build-web.ts');
  const { status } = spawnSync(process.execPath, [script, '--if-stale'], { stdio: 'inherit' });
  if (status !== 0) throw new Error('the dashboard does not build');
  cpSync(join(root, 'dist', 'web'), join(dirname(main), 'web'), { recursive: true });
}

async function seed(
  bench: Bench,
  { database, url }: { database: BenchDatabase; url: string },
  { days, small, daily }: Sizes,
): Promise<number> {
  const startedAt = performance.now();
  const log = (line: string) => bench.log(line);
  await seedHistory(database, url, {
    ...{ days: daysOf(days), schedules: small, daily, url: bench.receiver.url, log },
  });
  await database.calm();
  const [row] = await database.query('SELECT count(*)::int AS runs FROM all_runs');
  const runs = Number(row?.['runs']);
  const seconds = (performance.now() - startedAt) / 1000;
  log(`${runs.toLocaleString('en')} runs written in ${seconds.toFixed(0)} s`);
  return runs;
}

interface Measured {
  runs: number;
  schedules: number;
  lists: readonly ListedPage[];
  calls: readonly PageCall[];
}

function resultOf({ runs, schedules, lists, calls }: Measured): ScenarioResult {
  const slowest = <One extends { medianMs: number }>(all: readonly One[]): One => {
    const found = all.toSorted((a, b) => b.medianMs - a.medianMs)[0];
    if (!found) throw new Error('nothing was measured');
    return found;
  };
  const [call, list] = [slowest(calls), slowest(lists)];
  const worst = calls.toSorted((a, b) => b.worstMs - a.worstMs)[0] ?? call;
  return {
    scenario: 'dashboard',
    rounds: [{ runs, schedules, lists, calls }],
    table: {
      head: ['page', 'calls', 'slowest call, by its median', 'median', 'worst of all'],
      rows: [...Map.groupBy(calls, ({ page }) => page)].map(([page, all]) => {
        const one = slowest(all);
        const count = all.reduce((sum, { calls: made }) => sum + made, 0);
        const most = Math.max(...all.map(({ worstMs }) => worstMs));
        return [page, String(count), one.call, ms(one.medianMs), ms(most)];
      }),
    },
    bars: [
      atMost(`slowest call of a page (${call.page}: ${call.call})`, call.medianMs, 'ms', 200),
      atMost(`longest single call (${worst.page}: ${worst.call})`, worst.worstMs, 'ms', null, 200),
      atMost(`schedules with their last 20 runs (${list.what})`, list.medianMs, 'ms', 50),
    ],
    notes: [
      `${schedules.toLocaleString('en')} schedules, ${runs.toLocaleString('en')} runs`,
      ...lists.map((one) => `${one.what}: ${ms(one.medianMs)}, worst ${ms(one.worstMs)}`),
    ],
  };
}

function ms(value: number): string {
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;
}
