import { setTimeout as sleep } from 'node:timers/promises';
import { DAY_MS } from '../../src/core/history-day.ts';
import { openDatabase } from '../../src/store/database.ts';
import { isNotNow } from '../../src/store/errors.ts';
import { makeDays } from '../../src/store/history-days.ts';
import type { BenchDatabase } from './postgres.ts';

const LIMIT_MS = 20_000;
const POLL_MS = 200;

/** Gives past days, given by their first moments, tables of their own: as if a daemon had been there then. */
export async function makePastDays(database: BenchDatabase, days: readonly number[]): Promise<void> {
  await dropEmptyPast(database);
  const [first = 0, last = 0] = [days.at(0), days.at(-1)];
  const store = openDatabase(database.url, 1);
  try {
    await unlessNotNow(() => store.run((db) => makeDays(db, first, last + DAY_MS)));
  } finally {
    await store.close();
  }
}

export function nameOfDay(table: string, day: number): string {
  return `${table}_${iso(day).slice(0, 10).replaceAll('-', '')}`;
}

export function iso(moment: number): string {
  return new Date(moment).toISOString();
}

/** All that was before the first day is one partition, which is in the way; of a new database it is empty. */
async function dropEmptyPast(database: BenchDatabase): Promise<void> {
  for (const table of ['runs', 'attempts']) {
    const past = `${table}_before_days`;
    const [row] = await database.query(`SELECT EXISTS (SELECT FROM ${past}) AS filled`);
    if (row?.['filled'] === true) throw new Error(`${past} is not empty`);
    await database.query(`DROP TABLE ${past}`);
  }
}

/** The daemon sees to its days at the same time. */
async function unlessNotNow(work: () => Promise<void>): Promise<void> {
  for (let waited = 0; ; waited += POLL_MS) {
    try {
      await work();
      return;
    } catch (error) {
      if (!isNotNow(error) || waited >= LIMIT_MS) throw error;
      await sleep(POLL_MS);
    }
  }
}
