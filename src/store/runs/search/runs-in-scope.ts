import { type SQL, sql } from 'drizzle-orm';
import { type RunTrigger, isOfSchedule } from '../../../core/runs/run.ts';
import { hasOneOfIds } from '../../../postgres/sql/arrays.ts';
import type { Executor } from '../../../postgres/executor.ts';
import { onlyColumnOf } from '../../../postgres/sql/rows.ts';
import { type RunUse, eachRange, namesOwned, runsInScope } from '../../scopes/in-scope.ts';
import { ONE_OFF_KEYS } from '../idempotency-keys.ts';
import {
  type PagePart,
  type ReadPage,
  type RunFilter,
  newestFirst,
  newestOfParts,
  pageAmongMany,
} from './run-pages.ts';
import type { ColumnsOfRuns } from './runs-of-schedule.ts';

/** A scope, and what its caller does with the runs. */
interface InScope {
  scope: readonly string[];
  use: Exclude<RunUse, 'work'>;
}

interface Bounds {
  /** So few schedules are asked one by one for their runs, in each day of history. */
  fewSchedules: number;
  /** So few one-off runs are looked for by their ids. */
  fewKeys: number;
}

const BOUNDS: Bounds = { fewSchedules: 100, fewKeys: 1_000 };

/**
 * A page of the runs that a scope has, which may be a few among very many of others, or nearly all. A few schedules are asked for their
 * runs, and a few one-off runs are read by their ids.
 */
export async function pageInScope<R>(
  db: Executor,
  filter: RunFilter,
  inScope: InScope,
  { read, walked, ...bounds }: { read: ReadPage<R>; walked?: number } & Partial<Bounds>,
): Promise<R[]> {
  const conditions = runsInScope(inScope.scope, inScope.use);
  if (filter.ids) return read(newestFirst(filter, { conditions }));
  const parts = await partsInScope(db, filter, inScope, bounds);
  if (parts.length === 0) return [];
  // By its trigger, a run that is of no schedule is among few others.
  if (!isOfSchedules(filter) || !parts.some(({ isMany }) => isMany)) return read(newestOfParts(parts, filter));
  return pageAmongMany(db, filter, { read, conditions, walked, older: (page) => newestOfParts(parts, page) });
}

/** The same runs as one statement: for what reads all that match. Of many, it reads all that the filter allows. Null: there are none. */
export async function allInScope(
  db: Executor,
  filter: RunFilter,
  inScope: InScope,
  columns: ColumnsOfRuns,
): Promise<SQL | null> {
  const parts = await partsInScope(db, filter, inScope, {});
  if (parts.length === 0) return null;
  if (!parts.some(({ isMany }) => isMany)) return newestOfParts(parts, filter, columns);
  return newestFirst(filter, { columns, conditions: runsInScope(inScope.scope, inScope.use) });
}

/** The uids of all schedules of the scope that ever were; null: they are many. */
export async function fewSchedulesInScope(
  db: Executor,
  { scope, use }: InScope,
  most = BOUNDS.fewSchedules,
): Promise<string[] | null> {
  const parts = eachRange(sql`schedule_id`, scope, use).map(
    (range) => sql`(SELECT DISTINCT schedule_id, schedule_uid FROM schedule_versions WHERE ${range}
      ORDER BY schedule_id, schedule_uid LIMIT ${most + 1})`,
  );
  const uids = await onlyColumnOf<string>(db)(sql`-- fewSchedulesInScope
    SELECT v.schedule_uid AS uid FROM (${sql.join(parts, sql` UNION ALL `)}) AS v LIMIT ${most + 1}`);
  return uids.length > most ? null : uids;
}

/** The ids of the scope's one-off runs; null: they are many. */
export async function fewOneOffs(
  db: Executor,
  { scope, use }: InScope,
  most = BOUNDS.fewKeys,
): Promise<string[] | null> {
  const parts = eachRange(sql`k.key COLLATE "C"`, scope, use).map(
    (range) => sql`(SELECT k.run_id FROM run_keys k WHERE ${IS_ONE_OFF} AND ${range} LIMIT ${most + 1})`,
  );
  const ids = await onlyColumnOf<string>(db)(sql`-- fewOneOffs
    SELECT k.run_id FROM (${sql.join(parts, sql` UNION ALL `)}) AS k LIMIT ${most + 1}`);
  return ids.length > most ? null : ids;
}

/** In the words of the index of their keys. */
const IS_ONE_OFF = sql.raw(`k.scope = '${ONE_OFF_KEYS}'::uuid`);

/** One kind of the scope's runs. */
interface ScopePart extends PagePart {
  isMany: boolean;
}

/** Of the kinds that the filter allows: runs of schedules, one-off runs, messages. */
async function partsInScope(
  db: Executor,
  filter: RunFilter,
  inScope: InScope,
  { fewSchedules, fewKeys }: Partial<Bounds>,
): Promise<ScopePart[]> {
  const ofSchedules = isOfSchedules(filter) ? await partOfSchedules(db, filter, inScope, fewSchedules) : [];
  return [...ofSchedules, ...(await partsOfOthers(db, filter, inScope, fewKeys))];
}

function isOfSchedules({ triggers }: RunFilter): boolean {
  return triggers?.some((trigger) => isOfSchedule({ trigger })) ?? true;
}

async function partOfSchedules(
  db: Executor,
  filter: RunFilter,
  inScope: InScope,
  few: number | undefined,
): Promise<ScopePart[]> {
  const scheduleUids = await fewSchedulesInScope(db, inScope, few);
  if (scheduleUids?.length === 0) return [];
  if (scheduleUids) return [{ filter: { ...filter, scheduleUids }, more: { inScope: true }, isMany: false }];
  const ranges = eachRange(sql`schedule_id`, inScope.scope, inScope.use);
  const schedules = sql`(SELECT DISTINCT schedule_uid AS uid FROM schedule_versions WHERE ${sql.join(ranges, sql` OR `)})`;
  return [{ filter, more: { schedules, inScope: true }, isMany: true }];
}

/**
 * One-off runs, by their keys, and messages, by their notifiers' ids: the only way to the messages of a deleted one. If the
 * one-off runs are few, both are one part, and no condition is added that is not needed: PostgreSQL plans every day of history for each
 * part, and for each condition.
 */
async function partsOfOthers(
  db: Executor,
  filter: RunFilter,
  { scope, use }: InScope,
  few: number | undefined,
): Promise<ScopePart[]> {
  const isAsked = (trigger: RunTrigger) => filter.triggers?.includes(trigger) ?? true;
  const ids = isAsked('api') ? await fewOneOffs(db, { scope, use }, few) : [];
  const oneOffs = ids?.length ? [hasOneOfIds(sql`r.id`, ids)] : [];
  const messages = isAsked('notify') ? namesOwned(sql`r.notifier_id`, scope) : [];
  const either = [...oneOffs, ...messages];
  const conditions = [sql`(${sql.join(either, sql` OR `)})`];
  const part: ScopePart = { filter: { ...filter, triggers: undefined }, more: { conditions }, isMany: false };
  return [...(ids === null ? [partOfManyOneOffs(filter, { scope, use })] : []), ...(either.length === 0 ? [] : [part])];
}

function partOfManyOneOffs(filter: RunFilter, { scope, use }: InScope): ScopePart {
  const named = sql`(${sql.join(eachRange(sql`r.key COLLATE "C"`, scope, use), sql` OR `)})`;
  const conditions = [sql`r.trigger <> 'schedule'`, sql`r.trigger = 'api'`, named];
  return { filter: { ...filter, triggers: ['api'] }, more: { conditions }, isMany: true };
}
