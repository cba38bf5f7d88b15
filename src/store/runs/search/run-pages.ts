import { type SQL, sql } from 'drizzle-orm';
import type { Instant } from '../../../core/instant.ts';
import { RUN_ENDS } from '../../../core/run-end.ts';
import {
  type RunStatus,
  type RunTrigger,
  firstRunIdAt,
  isEnd,
  isOfSchedule,
  scheduledForOf,
} from '../../../core/runs/run.ts';
import type { Bound } from '../../../core/schedules/expect.ts';
import { hasOneOfIds, texts, uuids } from '../../../postgres/sql/arrays.ts';
import type { Executor } from '../../../postgres/executor.ts';
import { rowsOf } from '../../../postgres/sql/rows.ts';
import type { Labels } from '../../schedules/search/schedule-conditions.ts';
import { RECORD_COLUMNS, type RunTable } from '../record-columns.ts';
import { type ColumnsOfRuns, inBoth, newestOfSchedule } from './runs-of-schedule.ts';

export interface RunFilter {
  /** Only runs of these schedules, by uid; none named: of all. */
  scheduleUids?: readonly string[] | undefined;
  statuses?: readonly RunStatus[] | undefined;
  triggers?: readonly RunTrigger[] | undefined;
  /** Only runs that did not keep one of these bounds. */
  unmet?: readonly Bound[] | undefined;
  /** Of the schedule as it is now, or its own; see pageOfLabelled. */
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

/** No run can match. One-off runs and messages belong to no schedule: looking for some would read all runs of the schedule. */
export function isImpossible({ ids, scheduleUids, triggers }: RunFilter): boolean {
  if (ids?.length === 0) return true;
  return scheduleUids !== undefined && triggers?.every((trigger) => !isOfSchedule({ trigger })) === true;
}

interface More {
  /** Rows of a `uid` each: only runs of these schedules. */
  schedules?: SQL | undefined;
  /** On `r`, a run. */
  conditions?: readonly SQL[];
  /** What is answered of each run, its id among it; absent: the whole record. */
  columns?: ColumnsOfRuns;
  /** It is a caller with a scope who asks. */
  inScope?: boolean;
}

/**
 * The statement of a page, newest first: (scheduledFor, id) descending, which is the order of ids. Each part of the answer is read from
 * an index in that order, of `runs` and of each day of history, and merged. So a page costs the same however long the history is.
 */
export function newestFirst(filter: RunFilter, more: More = {}): SQL {
  const parts = partsOf(filter, more).map((part) => pageOf(filter, part, more));
  return sql`SELECT r.* FROM (${sql.join(parts, sql` UNION ALL `)}) AS r ORDER BY r.id DESC LIMIT ${filter.limit}`;
}

/** Runs that are found in one way. */
export interface PagePart {
  filter: Omit<RunFilter, 'limit'>;
  more: More;
}

/** The same of runs that are found in several ways. */
export function newestOfParts(
  parts: readonly PagePart[],
  { limit, before }: Pick<RunFilter, 'limit' | 'before'>,
  columns?: ColumnsOfRuns,
): SQL {
  const each = parts.map(({ filter, more }) =>
    newestFirst({ ...filter, limit, before }, columns ? { ...more, columns } : more),
  );
  const all = each.map((one) => sql`(${one})`);
  return sql`SELECT r.* FROM (${sql.join(all, sql` UNION ALL `)}) AS r ORDER BY r.id DESC LIMIT ${limit}`;
}

/** Reads what a statement of newestFirst answers, or one around it, newest first. */
export type ReadPage<R> = (page: SQL) => Promise<R[]>;

interface Meant<R> {
  read: ReadPage<R>;
  /** Conditions on `r`, a run. */
  conditions: readonly SQL[];
  /** The statement that asks for them by themselves. */
  older: (page: Required<Pick<RunFilter, 'before' | 'limit'>>) => SQL;
  /** So many runs, the newest, are looked at for them. */
  walked?: number | undefined;
}

/**
 * A page of many runs among very many others, or few. Some are nearly always among the newest of all; if the page is not full after those,
 * they are asked for by themselves, for what is older.
 */
export async function pageAmongMany<R>(
  db: Executor,
  filter: RunFilter,
  { read, conditions, older, walked = 10_000 }: Meant<R>,
): Promise<R[]> {
  const walk = { ...filter, limit: walked };
  const found =
    await read(sql`SELECT r.* FROM (${newestFirst(walk)}) AS r WHERE ${sql.join([...conditions], sql` AND `)}
    ORDER BY r.id DESC LIMIT ${filter.limit}`);
  const limit = filter.limit - found.length;
  if (limit === 0) return found;
  const [end] = await rowsOf<{ id: string }>(db)(sql`-- pageAmongMany
    SELECT r.id FROM (${newestFirst(walk, { columns: inBoth(sql`r.id`) })}) AS r ORDER BY r.id DESC OFFSET ${walked - 1} LIMIT 1`);
  if (!end) return found;
  const before = { id: end.id, scheduledFor: scheduledForOf(end.id) };
  return [...found, ...(await read(older({ before, limit })))];
}

/** Runs that one index has in the order of the list: of all schedules, or of each by itself. */
interface Part {
  /** Rows of a `uid` each; null: of all. */
  schedules: SQL | null;
  conditions: SQL[];
  tables: readonly RunTable[];
}

const BOTH: readonly RunTable[] = ['runs', 'history'];

/**
 * Nearly all runs were fired by their schedule and succeeded. These are read by time. All other ends and triggers have indexes of their
 * own, so that a query for rare ones does not read all the others.
 */
function partsOf({ scheduleUids, statuses, triggers }: RunFilter, more: More): Part[] {
  const schedules = scheduleUids ? sql`unnest(${uuids(scheduleUids)})` : (more.schedules ?? null);
  const rest = triggers ? [oneOf(sql`r.trigger`, triggers)] : [];
  if (statuses && !statuses.includes('succeeded')) {
    return statuses.map((status) => ({
      schedules,
      conditions: [statusIs(status), ...rest],
      tables: [isEnd(status) ? 'history' : 'runs'],
    }));
  }
  const some = statuses && statuses.length < ALL_STATUSES ? [oneOf(sql`r.status`, statuses)] : [];
  const isSeldom = triggers && !triggers.includes('schedule') && !schedules;
  if (!isSeldom) return [{ schedules, conditions: [...some, ...rest], tables: BOTH }];
  return triggers.map((trigger) => ({
    schedules,
    conditions: [sql`r.trigger <> 'schedule'`, sql`r.trigger = ${trigger}`, ...some],
    tables: BOTH,
  }));
}

const ALL_STATUSES = RUN_ENDS.length + 3;

/** In the words of the index of ends, which has no successes. */
function statusIs(status: RunStatus): SQL {
  return sql`r.status = ${status} AND r.status <> 'succeeded'`;
}

function pageOf(
  filter: RunFilter,
  part: Part,
  { columns = RECORD_COLUMNS, conditions: more = [], inScope }: More,
): SQL {
  const { ids, limit, unmet } = filter;
  const { schedules, tables } = part;
  const named = ids ? [hasOneOfIds(sql`r.id`, ids)] : [];
  const broken = unmet ? [sql`r.unmet IS NOT NULL`, sql`r.unmet && ${texts(unmet)}`] : [];
  const conditions = [...part.conditions, ...named, ...broken, ...within(filter), ...more];
  if (schedules) {
    const pages = newestOfSchedule(tables, { columns, conditions, limit, inScope });
    return sql`SELECT p.* FROM ${schedules} AS s(uid), LATERAL (${sql.join(pages, sql` UNION ALL `)}) AS p`;
  }
  const where = conditions.length > 0 ? sql`WHERE ${sql.join(conditions, sql` AND `)}` : sql``;
  const pages = tables.map(
    (table) => sql`(SELECT ${columns[table]} FROM ${sql.raw(table)} r ${where} ORDER BY r.id DESC LIMIT ${limit})`,
  );
  return sql.join(pages, sql` UNION ALL `);
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
