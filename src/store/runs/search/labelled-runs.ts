import { type SQL, sql } from 'drizzle-orm';
import { uuids } from '../../../postgres/sql/arrays.ts';
import type { Executor } from '../../../postgres/executor.ts';
import {
  type Labels,
  isLabelled,
  labelled,
  uidsLabelled,
} from '../../schedules/search/labelled-schedules.ts';
import { type ReadPage, type RunFilter, isImpossible, newestFirst, pageAmongMany } from './run-pages.ts';

/** So few schedules are asked one by one for their runs, in each day of history. */
const FEW = 100;

interface Reading<R> {
  read: ReadPage<R>;
  /** Conditions on `s.id`, of a schedule: those of the caller's scope. */
  named: readonly SQL[];
  few?: number;
  walked?: number;
}

/**
 * A page of runs whose schedule has all of these labels now. It may be one schedule, whose runs are among very many others, or every
 * schedule. A few are asked for their runs.
 */
export async function pageOfLabelled<R>(
  db: Executor,
  filter: RunFilter,
  labels: Labels,
  { read, named, few: atMost = FEW, walked }: Reading<R>,
): Promise<R[]> {
  const inScope = named.length > 0;
  const few = await fewLabelled(db, filter, { labels, named }, atMost);
  const of = few ? { ...filter, scheduleUids: few } : filter;
  if (few?.length === 0 || isImpossible(of)) return [];
  if (few) return read(newestFirst(of, { inScope }));
  const schedules = sql`(${labelled(labels, named)})`;
  return pageAmongMany(db, filter, {
    ...{ read, walked, conditions: [isLabelled(sql`r.schedule_uid`, labels, named)] },
    older: (page) => newestFirst({ ...filter, ...page }, { schedules, inScope }),
  });
}

/** The uids of the schedules; null: they are many. */
export async function fewLabelled(
  db: Executor,
  { scheduleUids }: Pick<RunFilter, 'scheduleUids'>,
  { labels, named }: { labels: Labels; named: readonly SQL[] },
  few = FEW,
): Promise<string[] | null> {
  const among = scheduleUids && uuids(scheduleUids);
  const limit = scheduleUids ? scheduleUids.length : few + 1;
  const uids = await uidsLabelled(db, labels, { among, named, limit });
  return scheduleUids || uids.length <= few ? uids : null;
}
