import { sql } from 'drizzle-orm';
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
import { type RunFilter, newestFirst, pageOfRuns } from './run-pages.ts';

interface Bounds {
  /** So few schedules are asked one by one for their runs, in each day of history. */
  few: number;
  /** So many runs, the newest, are looked at for those of labelled schedules. */
  walked: number;
}

const BOUNDS: Bounds = { few: 100, walked: 10_000 };

/**
 * As pageOfRuns, of runs whose schedule has all of these labels now. It may be one schedule, whose runs are among very many others, or
 * every schedule. A few are asked for their runs. Of many, some run is nearly always among the newest; if the page is not full after
 * those, the schedules are asked all the same, for what is older.
 */
export async function pageOfLabelledRuns(
  db: Executor,
  filter: RunFilter,
  labels: Labels,
  { few: atMost, walked }: Bounds = BOUNDS,
): Promise<string[]> {
  const few = await fewLabelled(db, filter, labels, atMost);
  if (few) return few.length === 0 ? [] : pageOfRuns(db, { ...filter, scheduleUids: few });
  if (filter.ids?.length === 0) return [];
  const walk = newestFirst({ ...filter, limit: walked }, { columns: sql`r.id, r.schedule_uid` });
  const rows = await rowsOf<{ id: string }>(
    db,
    sql`SELECT w.id FROM (${walk}) AS w WHERE ${isLabelled(sql`w.schedule_uid`, labels)}
    ORDER BY w.id DESC LIMIT ${filter.limit}`,
  );
  const found = rows.map(({ id }) => id);
  const limit = filter.limit - found.length;
  const end = limit > 0 ? await endOf(db, { ...filter, limit: walked }) : null;
  if (end === null) return found;
  const before = { id: end, scheduledFor: scheduledForOf(end) };
  const older = newestFirst({ ...filter, before, limit }, { schedules: sql`(${labelled(labels)})` });
  return [...found, ...(await rowsOf<{ id: string }>(db, older)).map(({ id }) => id)];
}

/** The uids of the schedules; null: they are many. */
export async function fewLabelled(
  db: Executor,
  { scheduleUids }: Pick<RunFilter, 'scheduleUids'>,
  labels: Labels,
  few = BOUNDS.few,
): Promise<string[] | null> {
  const among = scheduleUids && uuids(scheduleUids);
  const limit = scheduleUids ? scheduleUids.length : few + 1;
  const uids = await uidsLabelled(db, labels, { among, limit });
  return scheduleUids || uids.length <= few ? uids : null;
}

/** The last run of a walk; null: there were fewer, so that nothing older is there. */
async function endOf(db: Executor, walk: RunFilter): Promise<string | null> {
  const last = sql`SELECT r.id FROM (${newestFirst(walk)}) AS r ORDER BY r.id DESC OFFSET ${walk.limit - 1} LIMIT 1`;
  const [row] = await rowsOf<{ id: string }>(db, last);
  return row?.id ?? null;
}
