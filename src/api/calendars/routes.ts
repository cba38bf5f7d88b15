import { z } from 'zod';
import { MAX_DATES, readDateEntry } from '../../core/exclusions/day-set.ts';
import {
  answeredInstant,
  calendarIdText,
  ignored,
  scheduleIdText,
  text,
  withoutFault,
} from '../http/common-schemas.ts';
import { CALENDAR_KIND } from '../../operations/calendars/calendar-changes.ts';
import type { Calendar } from '../../store/calendars/calendar-rows.ts';
import type { Api, ApiDeps } from '../deps.ts';
import { answersOf } from '../http/routes.ts';
import { addNamedRoutes } from '../named/named-routes.ts';

const dateEntry = z.string().superRefine(withoutFault(dateFault)).meta({
  format: 'date-or-range',
  description: 'A date, or a range of dates that includes both ends; between 2000 and 2100.',
  example: '2026-12-24/2027-01-02',
});

export const dateEntries = z.array(dateEntry).max(MAX_DATES);

const description = text(1000);
const dates = dateEntries.meta({
  description: 'Dates, and ranges of dates that include both ends; between 2000 and 2100.',
  example: ['2026-12-25', '2026-12-31/2027-01-01'],
});

const validUntil = z
  .string()
  .superRefine(withoutFault((value) => (value.includes('/') ? 'must be one date' : dateFault(value))))
  .nullable()
  .meta({
    format: 'date',
    description: 'The last day that it covers; null: no end is known. Warnings begin 90 days before that day.',
    example: '2027-12-31',
  });

const calendarInput = z
  .strictObject({
    id: scheduleIdText.optional(),
    description: description.nullable().default(null),
    dates,
    validUntil: validUntil.default(null),
    version: ignored,
    updatedAt: ignored,
    nextFiresMoved: ignored,
  })
  .meta({ id: 'CalendarDefinition' });

export const calendar = z
  .object({
    id: calendarIdText,
    description: description.nullable(),
    dates: z.array(z.string()),
    validUntil,
    version: z.int(),
    updatedAt: answeredInstant,
    nextFiresMoved: z.boolean().meta({
      description:
        'Whether the next fires of all schedules that exclude it follow this version. Where not yet, firelock goes on by itself.',
    }),
  })
  .meta({ id: 'Calendar' });

function dateFault(value: string): string | null {
  const read = readDateEntry(value);
  return typeof read === 'string' ? read : null;
}

export function addCalendarRoutes(api: Api, deps: ApiDeps): void {
  addNamedRoutes(api, deps, {
    kind: CALENDAR_KIND,
    list: 'calendars',
    id: calendarIdText,
    input: calendarInput,
    answered: calendar,
    answer: answerCalendar,
    resolve: ({ description, dates, validUntil }) => ({ content: { description, dates, validUntil } }),
    summaries: {
      get: 'One calendar; its ETag is its version',
      put: 'Create a calendar, or replace it whole, and move the next fires of schedules that exclude it',
      delete: 'Delete a calendar that no schedule excludes',
    },
    refusals: [],
  });
}

const answered = answersOf(calendar);

function answerCalendar(stored: Calendar): z.output<typeof calendar> {
  return answered({ ...stored, nextFiresMoved: stored.appliedVersion === stored.version });
}
