import { and, sql } from 'drizzle-orm';
import { type NameRange, type Scope, prefixRanges, seenPrefixes } from '../../../core/access/scope.ts';
import type { Executor } from '../../../postgres/executor.ts';
import { scheduleVersions as versions, schedules } from '../../../postgres/schema.ts';
import { isFull } from '../../../postgres/sql/lists.ts';
import { rowsOf } from '../../../postgres/sql/rows.ts';
import { namesOwned } from '../../scopes/in-scope.ts';
import { type ScheduleFilter, conditions, listSchedules } from './find-schedules.ts';
import type { Schedule } from '../../../core/schedules/schedule.ts';

export type BulkScheduleFilter = Pick<ScheduleFilter, 'labels' | 'text' | 'statuses' | 'late'> & {
  /** Only those that a caller of this scope may change. */
  scope: Scope;
};

export interface MatchingSchedule {
  uid: string;
  id: string;
  enabled: boolean;
}

/** All of them that the caller may change, by id, without their definitions. It reads all schedules unless the statuses are rare. */
export function matchingSchedules(db: Executor, filter: BulkScheduleFilter): Promise<MatchingSchedule[]> {
  const named = namesOwned(sql`${schedules.id}`, filter.scope);
  // By hand: the query builder's own way with rows takes long with very many.
  return rowsOf<MatchingSchedule>(db)(sql`-- matchingSchedules
    SELECT ${schedules.uid} AS uid, ${schedules.id} AS id, ${schedules.enabled} AS enabled FROM ${schedules}
    JOIN ${versions} ON ${versions.scheduleUid} = ${schedules.uid} AND ${versions.version} = ${schedules.version}
    WHERE ${and(conditions(filter), ...named) ?? sql`true`} ORDER BY ${schedules.id}`);
}

interface Looked {
  schedules: Schedule[];
  /** The id of the last schedule that was looked at; null: there are no more, or enough were found. */
  end: string | null;
}

/** As lookWithin, of those that a caller of this scope sees: range by range, so that it reads past nothing between them. */
export async function lookThrough(
  db: Executor,
  { scope, ...filter }: ScheduleFilter & { scope: Scope },
  most?: number,
): Promise<Looked> {
  if (scope === null) return lookWithin(db, filter, most);
  const { after = '', limit } = filter;
  const found: Schedule[] = [];
  let left = most;
  for (const within of prefixRanges(seenPrefixes(scope)).filter(({ end }) => end > after)) {
    const some = await lookWithin(db, { ...filter, within, limit: limit - found.length }, left);
    found.push(...some.schedules);
    if (some.end !== null || found.length >= limit || isFull(filter.room)) return { schedules: found, end: some.end };
    // The range ended before so many were looked at.
    if (left !== undefined) left -= await countIn(db, within, after);
  }
  return { schedules: found, end: null };
}

/**
 * As listSchedules. With a text or a label, or where at most `most` schedules are to be looked at, it looks stretch by stretch, each
 * longer than the one before. What a text or a label matches is nothing that the planner can know: asked at once, it may read and sort
 * all schedules for a page that the first few hundred would fill.
 */
async function lookWithin(db: Executor, filter: ScheduleFilter, most?: number): Promise<Looked> {
  const isSearch = filter.text !== undefined || filter.labels !== undefined || most !== undefined;
  if (!isSearch) return { schedules: await listSchedules(db, filter), end: null };
  const found: Schedule[] = [];
  let { after } = filter;
  let looked = 0;
  for (let stretch = FIRST; ; stretch *= 4) {
    const size = Math.min(stretch, (most ?? Infinity) - looked);
    const last = await lastOfNext(db, size, { after, within: filter.within });
    const limit = filter.limit - found.length;
    found.push(...(await listSchedules(db, { ...filter, after, upTo: last ?? undefined, limit })));
    if (last === null || found.length >= filter.limit || isFull(filter.room)) return { schedules: found, end: null };
    looked += size;
    if (most !== undefined && looked >= most) return { schedules: found, end: last };
    after = last;
  }
}

const FIRST = 500;

type Stretch = Pick<ScheduleFilter, 'after' | 'within'>;

/** The id of the last of the next so many schedules, whatever these are; null: there are fewer. */
async function lastOfNext(db: Executor, count: number, stretch: Stretch): Promise<string | null> {
  const condition = conditions(stretch);
  const beyond = condition === undefined ? sql`` : sql`WHERE ${condition}`;
  const [last] = await rowsOf<{ id: string }>(db)(sql`-- lookThrough
    SELECT id FROM schedules ${beyond} ORDER BY id OFFSET ${count - 1} LIMIT 1`);
  return last?.id ?? null;
}

/** Of a range that was looked through: fewer than `most`. */
async function countIn(db: Executor, within: NameRange, after: string): Promise<number> {
  const [row] = await rowsOf<{ count: number }>(db)(sql`-- lookThrough
    SELECT count(*)::int AS count FROM schedules WHERE ${conditions({ after, within })}`);
  return row?.count ?? 0;
}
