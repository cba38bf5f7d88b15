import { z } from 'zod';
import { type Exclude, WEEKDAYS } from '../../../core/timing/timing.ts';
import { dateEntries } from '../../calendars/routes.ts';
import { calendarIdText } from '../../http/common-schemas.ts';
import { isObject } from '../../http/json/json-body.ts';
import { weekdays } from './day-schemas.ts';

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
  .strictObject({
    dates: fields.dates.default([]),
    calendars: fields.calendars.default([]),
    weekdays: fields.weekdays.default([]),
  })
  .transform(({ weekdays: days, ...named }): Exclude | null => {
    if (days.length > 0) return { ...named, weekdays: days };
    return named.dates.length + named.calendars.length > 0 ? named : null;
  })
  .meta({ id: 'Exclude', description: DESCRIPTION });

export const excludePatch = z.strictObject({
  dates: fields.dates.nullish(),
  calendars: fields.calendars.nullish(),
  weekdays: fields.weekdays.nullish(),
});

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
