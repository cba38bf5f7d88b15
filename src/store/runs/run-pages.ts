import { type SQL, sql } from 'drizzle-orm';
import type { Instant } from '../../core/instant.ts';
import { RUN_ENDS } from '../../core/runs/run-end.ts';
import { type RunStatus, type RunTrigger, firstRunIdAt, isEnd } from '../../core/runs/run.ts';
import { texts, uuids } from '../../postgres/sql/arrays.ts';
import type { Executor } from '../../postgres/executor.ts';
import { rowsOf } from '../../postgres/sql/rows.ts';
import type { Labels } from '../schedules/labelled-schedules.ts';

export interface RunFilter {
  /** Only runs of these schedules, by uid; none named: of all. */
  scheduleUids?: readonly string[] | undefined;
  statuses?: readonly RunStatus[] | undefined;
  triggers?: readonly RunTrigger[] | undefined;
  /** Of the schedule as it is now; see pageOfLabelledRuns. */
  labels?: Labels | undefined;
  /** Only these. */
  ids?: readonly string[] | undefined;
  /** Inclusive, of scheduledFor. */
  from?: Instant | undefined;
  /** Exclusive. */
  to?: Instant | undefined;
  /** Only runs older than this one, in the order of the list. */
  before?: { scheduledFor: Instant; id: string } | undefined;
  limit: number;
}

/**
 * Ids of runs, newest first: (scheduledFor, id) descending, which is the order of ids. Each part of the answer is read from an index in
 * that order, of `runs` and of each day of history, and merged. So a page costs the same however long the history is.
 */
export async function pageOfRuns(db: Executor, filter: RunFilter): Promise<string[]> {
  if (filter.ids?.length === 0) return [];
  const rows = await rowsOf<{ id: string }>(db, newestFirst(filter));
  return rows.map(({ id }) => id);
}

interface More {
  /** Rows of a `uid` each: only runs of these schedules. */
  schedules?: SQL | undefined;
  /** Conditions on `r`, a run. */
  also?: readonly SQL[];
  /** What is answered of each run `r`, its id among it. */
  columns?: SQL;
}

/** The statement of such a page. */
export function newestFirst(filter: RunFilter, more: More = {}): SQL {
  const parts = partsOf(filter, more).map((part) => pageOf(filter, part, more));
  return sql`SELECT r.* FROM (${sql.join(parts, sql` UNION ALL `)}) AS r ORDER BY r.id DESC LIMIT ${filter.limit}`;
}

/** Runs that one index has in the order of the list: for each value of `each` by itself. */
interface Part {
  each: SQL[];
  conditions: SQL[];
  tables: readonly SQL[];
}

const BOTH = [sql`runs`, sql`history`];

/**
 * Nearly all runs were fired by their schedule and succeeded. These are read by time. All other ends and triggers have indexes of their
 * own, so that a query for rare ones does not read all the others.
 */
function partsOf({ scheduleUids, statuses, triggers }: RunFilter, { schedules }: More): Part[] {
  const named = scheduleUids ? sql`unnest(${uuids(scheduleUids)})` : schedules;
  const ofSchedules = named ? [sql`${named} AS s(uid)`] : [];
  // Not `=`: with it, PostgreSQL would read all runs of one schedule in id order. And rows are compared, not values: with values the
  // planner expects so few runs of a schedule that it sorts them all.
  const ofSchedule = named
    ? [
        sql`(r.schedule_uid, r.id) >= (s.uid, ${MIN_ID}::uuid) AND (r.schedule_uid, r.id) <= (s.uid, ${GREATEST_ID}::uuid)`,
      ]
    : [];
  const rest = triggers ? [oneOf(sql`r.trigger`, triggers)] : [];
  if (statuses && !statuses.includes('succeeded')) {
    return statuses.map((status) => ({
      each: ofSchedules,
      conditions: [...ofSchedule, statusIs(status), ...rest],
      tables: [isEnd(status) ? sql`history` : sql`runs`],
    }));
  }
  const some = statuses && statuses.length < ALL_STATUSES ? [oneOf(sql`r.status`, statuses)] : [];
  const isSeldom = triggers && !triggers.includes('schedule') && !named;
  if (!isSeldom) return [{ each: ofSchedules, conditions: [...ofSchedule, ...some, ...rest], tables: BOTH }];
  return triggers.map((trigger) => ({
    each: [],
    conditions: [sql`r.trigger <> 'schedule'`, sql`r.trigger = ${trigger}`, ...some],
    tables: BOTH,
  }));
}

const MIN_ID = '00000000-0000-0000-0000-000000000000';
const GREATEST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';
const ALL_STATUSES = RUN_ENDS.length + 3;

/** In the words of the index of ends, which has no successes. */
function statusIs(status: RunStatus): SQL {
  return sql`r.status = ${status} AND r.status <> 'succeeded'`;
}

function pageOf(
  filter: RunFilter,
  { each, conditions, tables }: Part,
  { also = [], columns = sql`r.id` }: More,
): SQL {
  const { ids, limit } = filter;
  const named = ids ? [sql`r.id = ANY (${uuids(ids)})`] : [];
  const all = [...conditions, ...named, ...within(filter), ...also];
  const where = all.length > 0 ? sql`WHERE ${sql.join(all, sql` AND `)}` : sql``;
  const order = each.length > 0 ? sql`r.schedule_uid DESC, r.id DESC` : sql`r.id DESC`;
  const pages = tables.map(
    (table) => sql`(SELECT ${columns} FROM ${table} r ${where} ORDER BY ${order} LIMIT ${limit})`,
  );
  const page = sql.join(pages, sql` UNION ALL `);
  if (each.length === 0) return page;
  return sql`SELECT p.* FROM ${sql.join(each, sql`, `)}, LATERAL (${page}) AS p`;
}

/** Ids begin with scheduledFor. */
function within({ from, to, before }: RunFilter): SQL[] {
  return [
    ...(from === undefined ? [] : [sql`r.id >= ${firstRunIdAt(from)}::uuid`]),
    ...(to === undefined ? [] : [sql`r.id < ${firstRunIdAt(to)}::uuid`]),
    ...(before ? [sql`r.id < ${before.id}::uuid`] : []),
  ];
}

function oneOf(column: SQL, words: readonly string[]): SQL {
  return sql`${column} = ANY (${texts(words)})`;
}
