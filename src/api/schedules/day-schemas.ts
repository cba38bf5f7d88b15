import { z } from 'zod';
import { isPeriodicCron } from '../../core/cron/cron.ts';
import { CronError } from '../../core/cron/cron-parse.ts';
import { expressionsOf } from '../../core/cron/cron-fields.ts';
import { readDateEntry } from '../../core/exclusions/day-set.ts';
import { EVERY_UNITS, ON_EXCLUDED, PICK_PERIODS, type Exclude, WEEKDAYS } from '../../core/timing/timing.ts';
import { isObject } from '../http/json/json-body.ts';
import { whole, withoutFault, calendarIdText, nullish, withDefaults } from '../http/common-schemas.ts';
import type { Fault } from '../http/problem.ts';
import { dateEntries } from '../calendars/routes.ts';

const MAX_PERIODS = 366;

const weekdays = z
  .array(z.enum(WEEKDAYS))
  .refine((value) => new Set(value).size === value.length, { error: 'must not name a weekday twice' })
  .meta({ uniqueItems: true, description: 'Weekdays, each week.', example: ['sat', 'sun'] });

export const onExcluded = z.enum(ON_EXCLUDED).meta({
  description:
    'What becomes of the fires of an excluded day: not made · moved to the next, or to the previous, day that is not excluded, at most ' +
    '31 days away, at the same local time. Fires that then coincide are one.',
});

const everyFields = {
  n: whole(2, MAX_PERIODS).meta({ description: 'Every n-th period.', example: 2 }),
  unit: z.enum(EVERY_UNITS).meta({ description: 'Weeks begin on Monday.', example: 'week' }),
  from: z.string().superRefine(withoutFault(dateFault)).meta({
    format: 'date',
    description: 'A day of the first period. It never fires before that day.',
    example: '2027-01-04',
  }),
};

const EVERY =
  'With `cron` only: it fires only on local days, in ISO weeks or in months whose distance from the one of `from` is a multiple of `n`.';

export const every = z.strictObject(everyFields).meta({ id: 'Every', description: EVERY });
export const everyPatch = z.strictObject(everyFields).partial();

const pickFields = {
  of: z.enum(PICK_PERIODS).meta({ description: 'Weeks begin on Monday.', example: 'month' }),
  nth: z
    .array(
      whole(-MAX_PERIODS, MAX_PERIODS)
        .refine((value) => value !== 0, { error: 'must not be 0' })
        .meta({ not: { const: 0 } }),
    )
    .min(1)
    .max(MAX_PERIODS)
    .refine((value) => new Set(value).size === value.length, { error: 'must not name a place twice' })
    .meta({ uniqueItems: true, description: 'From 1 on; negative: from the end.', example: [-1] }),
};

const PICK =
  'With `cron` only: of the local days of each period on which it would fire after `every` and `exclude`, only the n-th ones; all fires of these days.';

export const pick = z.strictObject(pickFields).meta({ id: 'Pick', description: PICK });
export const pickPatch = z.strictObject(pickFields).partial();

/** Checks the body as sent, or as merged. */
export function refuseDayRules(value: unknown, context: z.core.$RefinementCtx): void {
  if (!isObject(value)) return;
  for (const { path, message } of dayRuleFaults(value))
    context.addIssue({ code: 'custom', path: path.split('/').slice(1), message });
}

/** What the days of a schedule cannot go together with. Values of a wrong type are left to their own checks. */
export function dayRuleFaults(value: Record<string, unknown>): Fault[] {
  const given = (field: string) => (value[field] ?? null) !== null;
  const moves = value['onExcluded'] === 'next' || value['onExcluded'] === 'previous';
  const faults: Fault[] = [];
  if (!given('cron')) {
    for (const field of ['every', 'pick'])
      if (given(field)) faults.push({ path: `/${field}`, message: ONLY_WITH_CRON });
    if (moves) faults.push({ path: '/onExcluded', message: ONLY_WITH_CRON });
    return faults;
  }
  if (moves && given('pick'))
    faults.push({
      path: '/onExcluded',
      message: 'must be skip where pick is given: it numbers the days that are left',
    });
  const periodic = moves ? periodicPath(value['cron']) : null;
  if (periodic !== null) faults.push({ path: '/onExcluded', message: `${NO_TIME_OF_DAY} ${periodic}` });
  return faults;
}

const ONLY_WITH_CRON = 'can only be given together with cron';
const NO_TIME_OF_DAY = 'must be skip, since there is no time of day to keep where all 24 hours are selected:';

/** The first expression that selects all hours; null: none does, or they are for another check to refuse. */
function periodicPath(cron: unknown): string | null {
  const isList = Array.isArray(cron) && cron.every((one) => typeof one === 'string');
  if (typeof cron !== 'string' && !isList) return null;
  try {
    const index = expressionsOf(cron).findIndex(isPeriodicCron);
    if (index < 0) return null;
    return isList ? `/cron/${index}` : '/cron';
  } catch (error) {
    if (error instanceof CronError) return null;
    throw error;
  }
}

function dateFault(value: string): string | null {
  if (value.includes('/')) return 'must be a date such as 2027-01-04';
  const read = readDateEntry(value);
  if (typeof read !== 'string') return null;
  return read.startsWith('must be a date such as') ? 'must be a date such as 2027-01-04' : read;
}

const MAX_CALENDARS = 16;

const fields = {
  dates: dateEntries.meta({ description: 'Dates and ranges of dates.', example: ['2026-12-24/2027-01-02'] }),
  calendars: z
    .array(calendarIdText)
    .max(MAX_CALENDARS)
    .refine((value) => new Set(value).size === value.length, { error: 'must not name a calendar twice' })
    .meta({ uniqueItems: true, description: 'Ids of calendars.', example: ['holidays'] }),
  weekdays,
};

const DESCRIPTION =
  'Local days, in `timezone`, on which it does not fire. Its moments on these days are no fires: nothing is caught up with or ' +
  'backfilled there, and `/occurrences` answers them as `excluded`. `onExcluded` can move its fires to other days.';

/** An `exclude` that excludes nothing is null. */
export const excludeInput = z
  .strictObject(withDefaults(fields, { dates: [], calendars: [], weekdays: [] }))
  .transform(({ weekdays: days, ...named }): Exclude | null => {
    if (days.length > 0) return { ...named, weekdays: days };
    return named.dates.length + named.calendars.length > 0 ? named : null;
  })
  .meta({ id: 'Exclude', description: DESCRIPTION });

export const excludePatch = z.strictObject(nullish(fields));

export const answeredExclude = z
  .object({ dates: z.array(z.string()), calendars: z.array(z.string()), weekdays: z.array(z.enum(WEEKDAYS)) })
  .meta({ id: 'AnsweredExclude', description: DESCRIPTION });

/** Checks the body as sent: an `after` schedule has no fire times of its own. */
export function refuseExcludeBesideAfter(value: unknown, context: z.core.$RefinementCtx): void {
  if (!isObject(value) || (value['after'] ?? null) === null || (value['exclude'] ?? null) === null) return;
  const message = 'cannot be combined with after: the schedule has no fire times of its own';
  context.addIssue({ code: 'custom', path: ['exclude'], message });
}

/** The ids of calendars that a body names, before anything is checked. */
export function calendarsNamedIn(body: unknown): string[] {
  const exclude = isObject(body) ? body['exclude'] : undefined;
  const named = isObject(exclude) ? exclude['calendars'] : undefined;
  return Array.isArray(named) ? named.filter((id) => typeof id === 'string') : [];
}
