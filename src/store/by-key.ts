import { type SQL, sql } from 'drizzle-orm';
import { DAY_MS, dayOf } from '../core/history-day.ts';
import { EARLIEST, type Instant, LATEST, isoInstant } from '../core/instant.ts';

/**
 * Joins rows of `runs` with a batch of their keys, which was unnested from these instants among others.
 *
 * The days of the rows say to the planner which partitions there are to look at: a batch is of one day or two, and a statement that is
 * not told so is planned for all of history. Said of the batch as well, they say nothing that is new; but of a range the planner
 * expects few of the batch, and so it goes to each row by its key. Left to what it knows of a table that grows all day, it reads all of
 * the day for each batch.
 */
export function runsByKey(runs: SQL, batch: SQL, times: readonly Instant[]): SQL {
  return sql`${runs}.scheduled_for = ${batch}.scheduled_for AND ${runs}.id = ${batch}.id
    AND ${withinDaysOf(sql`${runs}.scheduled_for`, times)} AND ${withinDaysOf(sql`${batch}.scheduled_for`, times)}`;
}

/** The days of these instants. */
export function withinDaysOf(column: SQL, times: readonly Instant[]): SQL {
  const [first, last] = times.reduce(([a, b], at) => [Math.min(a, at), Math.max(b, at)], [LATEST, EARLIEST]);
  return sql`${column} >= ${startOfDay(first)} AND ${column} < ${startOfDay(last + DAY_MS)}`;
}

/** In words, so that a plan that is kept (frequentRowsOf) is one for these days. */
export function startOfDay(at: Instant): SQL {
  return sql.raw(`'${isoInstant(dayOf(at))}'::timestamptz`);
}

/** True of any uid in a batch; the planner then expects few of them, and goes to each row by its key. */
export function anyUid(column: SQL): SQL {
  return sql`${column} BETWEEN '00000000-0000-0000-0000-000000000000' AND 'ffffffff-ffff-ffff-ffff-ffffffffffff'`;
}
