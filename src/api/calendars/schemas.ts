import { z } from 'zod';
import { MAX_DATES, readDateEntry } from '../../core/exclusions/date-entries.ts';
import { answeredInstant, ignored, scheduleIdText, text, withoutFault } from '../http/common-schemas.ts';

const dateEntry = z.string().superRefine(withoutFault(dateFault)).meta({
  format: 'date-or-range',
  description: 'A date, or a range of dates that includes both ends; between 2000 and 2100.',
  example: '2026-12-24/2027-01-02',
});

export const dateEntries = z.array(dateEntry).max(MAX_DATES);

export const calendarIdText = scheduleIdText.meta({
  description: 'Chosen by the client.',
  example: 'holidays',
});

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
    description:
      'The last day of which it says anything; null: none is known. From 90 days before it on, whoever uses it is told.',
    example: '2027-12-31',
  });

export const calendarInput = z
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
