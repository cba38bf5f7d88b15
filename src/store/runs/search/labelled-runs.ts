import { type SQL, sql } from 'drizzle-orm';
import type { Scope } from '../../../core/access/scope.ts';
import { isOfSchedule } from '../../../core/runs/run.ts';
import { uuids } from '../../../postgres/sql/arrays.ts';
import type { Executor } from '../../../postgres/executor.ts';
import { onlyColumnOf } from '../../../postgres/sql/rows.ts';
import { type Labels, isLabelled, labelled, uidsLabelled } from '../../schedules/search/schedule-conditions.ts';
import { type RunUse, namesSeen, runsInScope } from '../../scopes/in-scope.ts';
import { tagInScope } from '../run-tags.ts';
import { type PagePart, type ReadPage, type RunFilter, newestOfParts, pageAmongMany } from './run-pages.ts';

/** So few schedules are asked one by one for their runs, in each day of history. */
const FEW = 100;
/** So few one-off runs are looked for by their ids. */
const FEW_OWN = 1_000;

interface Reading<R> {
  read: ReadPage<R>;
  scope: Scope;
  few?: number;
  walked?: number;
}

/**
 * A page of runs that have all of these labels: those whose schedule has them now, and one-off runs with their own. It may be one
 * schedule, whose runs are among very many others, or every schedule. A few are asked for their runs.
 */
export async function pageOfLabelled<R>(
  db: Executor,
  filter: RunFilter,
  labels: Labels,
  { read, scope, few: atMost = FEW, walked }: Reading<R>,
): Promise<R[]> {
  const named = namesSeen(sql`s.id`, scope);
  const inScope = scope !== null;
  const mayBeOfSchedule = filter.triggers?.some((trigger) => isOfSchedule({ trigger })) ?? true;
  const few = mayBeOfSchedule ? await fewLabelled(db, filter, { labels, named }, atMost) : [];
  const own = await labelledThemselves(db, filter, labels, { scope, use: 'read' });
  const ofSchedules = (more: PagePart['more'], of = filter): PagePart[] => [{ filter: of, more: { ...more, inScope } }];
  const found = few?.length ? ofSchedules({}, { ...filter, scheduleUids: few }) : [];
  if (few) return few.length + own.length === 0 ? [] : read(newestOfParts([...found, ...own], filter));
  const schedules = sql`(${labelled(labels, named)})`;
  const parts = [...ofSchedules({ schedules }), ...own];
  const ofSchedule = isLabelled(sql`r.schedule_uid`, labels, named);
  const byItself = sql.join([isItselfLabelled(sql`r.id`, labels), ...runsInScope(scope, 'read')], sql` AND `);
  return pageAmongMany(db, filter, {
    ...{ read, walked },
    conditions: [own.length === 0 ? ofSchedule : sql`(${ofSchedule} OR ${byItself})`],
    older: (page) => newestOfParts(parts, page),
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

/** One-off runs that have the labels themselves, if the filter allows any; none: there are none. */
export async function labelledThemselves(
  db: Executor,
  filter: Omit<RunFilter, 'limit'>,
  labels: Labels,
  { scope, use, few = FEW_OWN }: { scope: Scope; use: RunUse; few?: number },
): Promise<PagePart[]> {
  if (filter.scheduleUids || filter.triggers?.includes('api') === false) return [];
  const found = await onlyColumnOf<string>(db)(sql`-- labelledThemselves
    SELECT t.run_id FROM run_tags t WHERE ${have(labels)}${tagInScope(scope, use)} LIMIT ${few + 1}`);
  const conditions = runsInScope(scope, use);
  if (found.length > few) {
    const all = [isItselfLabelled(sql`r.id`, labels), ...conditions];
    return [{ filter: { ...filter, triggers: ['api'] }, more: { conditions: all } }];
  }
  const ids = found.filter((id) => filter.ids?.includes(id) ?? true);
  return ids.length === 0 ? [] : [{ filter: { ...filter, triggers: undefined, ids }, more: { conditions } }];
}

/** Whether the one-off run of this id has them itself. Evaluated for each row, as isLabelled is. */
export function isItselfLabelled(id: SQL, labels: Labels): SQL {
  return sql`(SELECT true FROM run_tags t WHERE t.run_id = ${id} AND ${have(labels)}) IS TRUE`;
}

/** In the words of the index `run_tags_labels`. */
function have(labels: Labels): SQL {
  const each = labels.map(([key, value]) => sql`t.labels @> ${JSON.stringify({ [key]: value })}::jsonb`);
  return sql`t.labels IS NOT NULL AND ${sql.join(each, sql` AND `)}`;
}
