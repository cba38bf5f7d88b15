import { setTimeout as sleep } from 'node:timers/promises';
import { openDatabase } from '../../../src/postgres/database.ts';
import { isNotNow } from '../../../src/postgres/errors.ts';
import { createPartition } from '../../../src/postgres/history-partitions.ts';
import type { BenchDatabase } from '../processes/postgres.ts';

const LIMIT_MS = 20_000;
const POLL_MS = 200;

/** Gives past days, given by their first moments, tables of their own: as if a daemon had been there then. */
export async function makePastDays(database: BenchDatabase, days: readonly number[]): Promise<void> {
  const store = openDatabase(database.url, 1);
  try {
    for (const day of days) await unlessNotNow(() => store.transaction((tx) => createPartition(tx, day)));
  } finally {
    await store.close();
  }
}

export function nameOfDay(day: number): string {
  return `history_${iso(day).slice(0, 10).replaceAll('-', '')}`;
}

export function iso(moment: number): string {
  return new Date(moment).toISOString();
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
