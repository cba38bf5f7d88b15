import { sql } from 'drizzle-orm';
import type { Executor } from '../../../postgres/executor.ts';
import { scheduleVersions as versions, schedules } from '../../../postgres/schema.ts';
import { rowsOf } from '../../../postgres/sql/rows.ts';
import { type ScheduleFilter, conditions, listSchedules } from './find-schedules.ts';
import type { Schedule } from '../../../core/schedules/schedule.ts';

export type BulkScheduleFilter = Pick<ScheduleFilter, 'labels' | 'text' | 'statuses' | 'late'>;

export interface MatchingSchedule {
  uid: string;
  id: string;
  enabled: boolean;
}

/** All of them, by id, without their definitions. It reads all schedules unless the statuses are rare. */
export function matchingSchedules(db: Executor, filter: BulkScheduleFilter): Promise<MatchingSchedule[]> {
  // By hand: the query builder's own way with rows takes long with very many.
  return rowsOf<MatchingSchedule>(db)(sql`-- matchingSchedules
    SELECT ${schedules.uid} AS uid, ${schedules.id} AS id, ${schedules.enabled} AS enabled FROM ${schedules}
    JOIN ${versions} ON ${versions.scheduleUid} = ${schedules.uid} AND ${versions.version} = ${schedules.version}
    WHERE ${conditions(filter) ?? sql`true`} ORDER BY ${schedules.id}`);
}

interface Looked {
  schedules: Schedule[];
  /** The id of the last schedule that was looked at; null: there are no more, or enough were found. */
  end: string | null;
}

/**
 * As listSchedules. With a text or a label, or where at most `most` schedules are to be looked at, it looks stretch by stretch, each
 * longer than the one before. What a text or a label matches is nothing that the planner can know: asked at once, it may read and sort
 * all schedules for a page that the first few hundred would fill.
 */
export async function lookThrough(db: Executor, filter: ScheduleFilter, most?: number): Promise<Looked> {
  const isSearch = filter.text !== undefined || filter.labels !== undefined || most !== undefined;
  if (!isSearch) return { schedules: await listSchedules(db, filter), end: null };
  const found: Schedule[] = [];
  let { after } = filter;
  let looked = 0;
  for (let stretch = FIRST; ; stretch *= 4) {
    const size = Math.min(stretch, (most ?? Infinity) - looked);
    const last = await lastOfNext(db, size, after);
    const limit = filter.limit - found.length;
    found.push(...(await listSchedules(db, { ...filter, after, upTo: last ?? undefined, limit })));
    if (last === null || found.length >= filter.limit) return { schedules: found, end: null };
    looked += size;
    if (most !== undefined && looked >= most) return { schedules: found, end: last };
    after = last;
  }
}

const FIRST = 500;

/** The id of the last of the next so many schedules, whatever these are; null: there are fewer. */
async function lastOfNext(db: Executor, count: number, after: string | undefined): Promise<string | null> {
  const beyond = after === undefined ? sql`` : sql`WHERE id > ${after}`;
  const [last] = await rowsOf<{ id: string }>(db)(sql`-- lookThrough
    SELECT id FROM schedules ${beyond} ORDER BY id OFFSET ${count - 1} LIMIT 1`);
  return last?.id ?? null;
}
