import { type SQL, sql } from 'drizzle-orm';
import { DAY_MS, dayOf } from '../core/history-day.ts';
import { type Instant, isoInstant } from '../core/instant.ts';
import { RUN_ENDS } from '../core/run-end.ts';
import {
  PLANNED_TRIGGERS,
  RUN_TRIGGERS,
  type RunStatus,
  type RunTrigger,
  scheduledForOf,
} from '../core/run.ts';
import { systemClock } from '../runtime/clock.ts';
import { instants, texts, uuids } from './arrays.ts';
import { runsByKey } from './by-key.ts';
import type { Executor } from './executor.ts';
import { isOpen } from './open-runs.ts';
import { type InstantText, rowsOf, toInstant } from './rows.ts';

export interface RunFilter {
  /** Only runs of these schedules, by uid; none named: of all. */
  scheduleUids?: readonly string[] | undefined;
  statuses?: readonly RunStatus[] | undefined;
  triggers?: readonly RunTrigger[] | undefined;
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

export interface RunKey {
  scheduledFor: Instant;
  id: string;
}

/**
 * Newest first: (scheduledFor, id) descending. History is one partition per day, and a statement is planned for each day that it does
 * not rule out: so the newest days are read first, and older ones only where the page is not full.
 */
export async function pageOfRuns(db: Executor, filter: RunFilter, clock = systemClock): Promise<RunKey[]> {
  const found: RunKey[] = [];
  if (filter.ids) return filter.ids.length === 0 ? [] : readKeys(db, namedRuns(filter, filter.ids));
  for (const window of windowsOf(filter, clock.now())) {
    const limit = filter.limit - found.length;
    if (limit <= 0) break;
    found.push(...(await readKeys(db, newestOf({ ...filter, limit }, window))));
  }
  return found;
}

interface Window {
  /** Inclusive; null: from the beginning. */
  since: Instant | null;
  /** Exclusive; null: to the end. */
  until: Instant | null;
}

/** One after the other back in time, all in all what the filter spans. Any `now` will do: it says where runs are likely to be. */
export function windowsOf({ from, to, before }: RunFilter, now: Instant): Window[] {
  const newest = dayOf(Math.min(now, (to ?? Infinity) - 1, before?.scheduledFor ?? Infinity));
  const windows: Window[] = [];
  let until: Instant | null = null;
  for (const days of DAYS_BACK) {
    const since = newest - days * DAY_MS;
    if (from !== undefined && since <= from) break;
    windows.push({ since, until });
    until = since;
  }
  return [...windows, { since: from ?? null, until }];
}

/** A day; four more. What is not found there is rare, or ended long ago. */
const DAYS_BACK = [0, 4];

async function readKeys(db: Executor, statement: SQL): Promise<RunKey[]> {
  const rows = await rowsOf<{ scheduled_for: InstantText; id: string }>(db, statement);
  return rows.map((row) => ({ scheduledFor: toInstant(row.scheduled_for), id: row.id }));
}

function namedRuns(filter: RunFilter, ids: readonly string[]): SQL {
  const { scheduleUids, statuses, triggers, limit } = filter;
  const times = ids.map(scheduledForOf);
  const conditions = [
    runsByKey(sql`r`, sql`k`, times),
    ...(scheduleUids ? [sql`r.schedule_uid = ANY(${uuids(scheduleUids)})`] : []),
    ...(statuses ? [oneOf(sql`r.status`, statuses)] : []),
    ...(triggers ? [oneOf(sql`r.trigger`, triggers)] : []),
    ...within(filter, { since: filter.from ?? null, until: null }),
  ];
  return sql`SELECT r.scheduled_for, r.id FROM unnest(${uuids(ids)}, ${instants(times)}) AS k(id, scheduled_for)
    JOIN runs r ON ${allOf(conditions)} ${newestFirst(limit)}`;
}

/** Of all that may be in the page the newest from each place, and the newest of these. */
function newestOf(filter: RunFilter, window: Window): SQL {
  const more = [...restOf(filter), ...within(filter, window)];
  const ofSchedules = filter.scheduleUids && sql`unnest(${uuids(filter.scheduleUids)}) AS s(uid)`;
  const parts = placesOf(filter).map(({ each, conditions }) => {
    const lists = [ofSchedules, each].filter((list) => list !== undefined);
    const page = sql`SELECT r.scheduled_for, r.id FROM runs r
      WHERE ${allOf([...conditions, ...more])} ${newestFirst(filter.limit)}`;
    return lists.length === 0
      ? sql`(${page})`
      : sql`SELECT p.scheduled_for, p.id FROM ${sql.join(lists, sql`, `)}, LATERAL (${page}) AS p`;
  });
  return sql`SELECT r.scheduled_for, r.id FROM (${sql.join(parts, sql` UNION ALL `)}) AS r ${newestFirst(filter.limit)}`;
}

/** Where runs stand in the order of the list: in an index, for each value of a list if need be. */
interface Place {
  each?: SQL;
  /** Among them, to the letter, the condition of the index. */
  conditions: SQL[];
}

/**
 * Nearly all runs were fired by their schedule and succeeded, and are read by time. All other ends, and triggers, have indexes of
 * their own, so that those that are rare, or not there at all, are not looked for among the others.
 */
function placesOf({ scheduleUids, statuses, triggers }: RunFilter): Place[] {
  if (statuses && !statuses.includes('succeeded')) return placesOfStatuses(statuses);
  const named = triggers ?? RUN_TRIGGERS;
  return scheduleUids ? placesOfSchedule(named) : placesOfTriggers(named);
}

function placesOfStatuses(statuses: readonly RunStatus[]): Place[] {
  return [
    ...placeOf(statuses, OPEN, (open) => ({
      conditions: [isOpen(sql`r`), ...narrowed(sql`r.status`, open, OPEN)],
    })),
    ...placeOf(statuses, RUN_ENDS, (ends) => ({
      each: sql`unnest(${texts(ends)}) AS e(status)`,
      conditions: [
        sql`r.status IN ('failed', 'unknown', 'abandoned', 'skipped', 'cancelled') AND r.status = e.status`,
      ],
    })),
  ];
}

function placesOfTriggers(triggers: readonly RunTrigger[]): Place[] {
  if (triggers.includes('schedule'))
    return [{ conditions: narrowed(sql`r.trigger`, triggers, RUN_TRIGGERS) }];
  return [...placeOf(triggers, SELDOM, seldom), ...placeOf(triggers, ['api'], unplanned)];
}

/** Planned and other runs of a schedule stand in two indexes. */
function placesOfSchedule(triggers: readonly RunTrigger[]): Place[] {
  const ofPlanned = triggers.includes('schedule') ? planned : seldom;
  return [...placeOf(triggers, PLANNED_TRIGGERS, ofPlanned), ...placeOf(triggers, UNPLANNED, unplanned)];
}

function planned(triggers: readonly RunTrigger[]): Place {
  const some = narrowed(sql`r.trigger`, triggers, PLANNED_TRIGGERS);
  return { conditions: [sql`r.trigger IN ('schedule', 'catchUp', 'backfill')`, ...some] };
}

function unplanned(triggers: readonly RunTrigger[]): Place {
  const some = narrowed(sql`r.trigger`, triggers, UNPLANNED);
  return { conditions: [sql`r.trigger NOT IN ('schedule', 'catchUp', 'backfill')`, ...some] };
}

function seldom(triggers: readonly RunTrigger[]): Place {
  return {
    each: sql`unnest(${texts(triggers)}) AS t(trigger)`,
    conditions: [sql`r.trigger NOT IN ('schedule', 'api') AND r.trigger = t.trigger`],
  };
}

const OPEN: readonly RunStatus[] = ['waiting', 'pending', 'running'];
const UNPLANNED: readonly RunTrigger[] = ['manual', 'after', 'api'];
const SELDOM: readonly RunTrigger[] = ['catchUp', 'backfill', 'manual', 'after'];

/** The place of those that are among `all`; none where none is. */
function placeOf<Word extends string>(
  words: readonly Word[],
  all: readonly Word[],
  place: (words: readonly Word[]) => Place,
): Place[] {
  const some = words.filter((word) => all.includes(word));
  return some.length === 0 ? [] : [place(some)];
}

/** Nothing where the condition of the index says it: then the index answers alone. */
function narrowed(column: SQL, words: readonly string[], all: readonly string[]): SQL[] {
  return all.every((word) => words.includes(word)) ? [] : [oneOf(column, words)];
}

/** What places do not see to by themselves. */
function restOf({ scheduleUids, statuses, triggers }: RunFilter): SQL[] {
  const byStatus = statuses && !statuses.includes('succeeded');
  return [
    ...(scheduleUids ? [sql`r.schedule_uid = s.uid`] : []),
    ...(statuses && !byStatus ? [oneOf(sql`r.status`, statuses)] : []),
    ...(triggers && byStatus ? [oneOf(sql`r.trigger`, triggers)] : []),
  ];
}

function within({ to, before }: RunFilter, { since, until }: Window): SQL[] {
  const at = (instant: Instant) => sql`${isoInstant(instant)}::timestamptz`;
  return [
    ...(since === null ? [] : [sql`r.scheduled_for >= ${at(since)}`]),
    ...(until === null ? [] : [sql`r.scheduled_for < ${at(until)}`]),
    ...(to === undefined ? [] : [sql`r.scheduled_for < ${at(to)}`]),
    // Of a pair the planner does not see which days it rules out.
    ...(before
      ? [
          sql`r.scheduled_for <= ${at(before.scheduledFor)}
            AND (r.scheduled_for, r.id) < (${at(before.scheduledFor)}, ${before.id}::uuid)`,
        ]
      : []),
  ];
}

function newestFirst(limit: number): SQL {
  return sql`ORDER BY r.scheduled_for DESC, r.id DESC LIMIT ${limit}`;
}

function oneOf(column: SQL, words: readonly string[]): SQL {
  return sql`${column} IN (${sql.join(
    words.map((word) => sql`${word}`),
    sql`, `,
  )})`;
}

function allOf(conditions: readonly SQL[]): SQL {
  return sql.join([...conditions, sql`true`], sql` AND `);
}
