import { type SQL, sql } from 'drizzle-orm';
import { scheduledForOf } from '../../../core/runs/run.ts';
import { uuids } from '../../../postgres/sql/arrays.ts';
import type { Executor } from '../../../postgres/executor.ts';
import { rowsOf } from '../../../postgres/sql/rows.ts';
import {
  type Labels,
  isLabelled,
  labelled,
  uidsLabelled,
} from '../../schedules/search/labelled-schedules.ts';
import { type RunFilter, isImpossible, newestFirst } from './run-pages.ts';
import { inBoth } from './runs-of-schedule.ts';

interface Bounds {
  /** So few schedules are asked one by one for their runs, in each day of history. */
  few: number;
  /** So many runs, the newest, are looked at for those of labelled schedules. */
  walked: number;
}

const BOUNDS: Bounds = { few: 100, walked: 10_000 };

/** Reads what a statement of newestFirst answers, or one around it, newest first. */
export type ReadPage<R> = (page: SQL) => Promise<R[]>;

interface Reading<R> {
  read: ReadPage<R>;
  /** Conditions on `s.id`, of a schedule: those of the caller's scope. */
  named: readonly SQL[];
}

/**
 * A page of runs whose schedule has all of these labels now. It may be one schedule, whose runs are among very many others, or every
 * schedule. A few are asked for their runs. Of many, some run is nearly always among the newest; if the page is not full after those,
 * the schedules are asked all the same, for what is older.
 */
export async function pageOfLabelled<R extends { id: string }>(
  db: Executor,
  filter: RunFilter,
  labels: Labels,
  { read, named, few: atMost = BOUNDS.few, walked = BOUNDS.walked }: Reading<R> & Partial<Bounds>,
): Promise<R[]> {
  const inScope = named.length > 0;
  const few = await fewLabelled(db, filter, { labels, named }, atMost);
  const of = few ? { ...filter, scheduleUids: few } : filter;
  if (few?.length === 0 || isImpossible(of)) return [];
  if (few) return read(newestFirst(of, { inScope }));
  const walk = { ...filter, limit: walked };
  const found = await read(
    sql`SELECT w.* FROM (${newestFirst(walk)}) AS w WHERE ${isLabelled(sql`w.schedule_uid`, labels, named)}
    ORDER BY w.id DESC LIMIT ${filter.limit}`,
  );
  const limit = filter.limit - found.length;
  const end = limit > 0 ? await endOfWalk(db, walk) : null;
  if (end === null) return found;
  const before = { id: end, scheduledFor: scheduledForOf(end) };
  const older = newestFirst(
    { ...filter, before, limit },
    { schedules: sql`(${labelled(labels, named)})`, inScope },
  );
  return [...found, ...(await read(older))];
}

/** The uids of the schedules; null: they are many. */
export async function fewLabelled(
  db: Executor,
  { scheduleUids }: Pick<RunFilter, 'scheduleUids'>,
  { labels, named }: { labels: Labels; named: readonly SQL[] },
  few = BOUNDS.few,
): Promise<string[] | null> {
  const among = scheduleUids && uuids(scheduleUids);
  const limit = scheduleUids ? scheduleUids.length : few + 1;
  const uids = await uidsLabelled(db, labels, { among, named, limit });
  return scheduleUids || uids.length <= few ? uids : null;
}

/** The last run of a walk; null: there were fewer, so that nothing older is there. */
export async function endOfWalk(db: Executor, walk: RunFilter): Promise<string | null> {
  const [row] = await rowsOf<{ id: string }>(db)(sql`-- endOfWalk
    SELECT r.id FROM (${newestFirst(walk, { columns: inBoth(sql`r.id`) })}) AS r ORDER BY r.id DESC OFFSET ${walk.limit - 1} LIMIT 1`);
  return row?.id ?? null;
}
