import { sql } from 'drizzle-orm';
import { DAY_MS, dayOf } from '../../src/core/history-day.ts';
import { listHistory, makeDays } from '../../src/store/history-days.ts';
import type { Store } from './pipeline.ts';

/** Makes of the first partition, which has all days up to tomorrow and must be empty, one of the days before this one. */
export async function endFirstPartitionBefore({ database }: Pick<Store, 'database'>, day: number) {
  const at = new Date(dayOf(day)).toISOString();
  await database.transaction(async (tx) => {
    for (const table of ['runs', 'attempts']) {
      await tx.execute(sql.raw(`ALTER TABLE ${table} DETACH PARTITION ${table}_before_days`));
      await tx.execute(
        sql.raw(
          `ALTER TABLE ${table} ATTACH PARTITION ${table}_before_days FOR VALUES FROM (MINVALUE) TO ('${at}')`,
        ),
      );
    }
  });
}

/** Gives the days from so many days ago to so many days ago (negative: ahead) tables of their own, on an empty database. */
export async function makeHistory(store: Store, { from, to }: { from: number; to: number }) {
  const first = dayOf(Date.now()) - from * DAY_MS;
  await endFirstPartitionBefore(store, first);
  await store.database.run((db) => makeDays(db, first, first + (from - to + 1) * DAY_MS));
}

/** The names of the tables that runs stand in. */
export async function partitions({ database }: Store): Promise<string[]> {
  const { days } = await database.run(listHistory);
  return days.map(({ runs }) => runs);
}

/** Where a run stands. */
export async function tableOf(store: Store, id: string): Promise<string | null> {
  const [row] = await store.rows<{ name: string }>(
    sql`SELECT tableoid::regclass::text AS name FROM runs WHERE id = ${id}`,
  );
  return row?.name ?? null;
}
