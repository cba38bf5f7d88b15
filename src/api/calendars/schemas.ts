import { z } from 'zod';
import { answeredInstant, scheduleIdText, text } from '../http/common-schemas.ts';
import { limitQuery, pageSchema, scheduleCursor } from '../http/pages.ts';
import { calendarIdText, dateEntries } from '../schedules/timing/exclude-schemas.ts';

export const calendarIdParams = z.strictObject({ id: calendarIdText });

export const calendarsQuery = z.strictObject({
  q: text(1000).optional().meta({ description: 'Part of the id or the description, in any letter case.' }),
  limit: limitQuery,
  cursor: scheduleCursor.optional(),
});

const description = text(1000);
const dates = dateEntries.meta({
  description: 'Dates, and ranges of dates that include both ends; between 2000 and 2100.',
  example: ['2026-12-25', '2026-12-31/2027-01-01'],
});

/** Accepted and ignored, so that a caller can edit the answer of GET and send it back. */
const ignored = z.unknown().optional().meta({ readOnly: true });

export const calendarInput = z
  .strictObject({
    id: scheduleIdText.optional(),
    description: description.nullable().default(null),
    dates,
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
    version: z.int(),
    updatedAt: answeredInstant,
    nextFiresMoved: z.boolean().meta({
      description:
        'Whether the next fires of all schedules that exclude it follow this version. Where not yet, firelock goes on by itself.',
    }),
  })
  .meta({ id: 'Calendar' });

export const calendarPage = pageSchema(calendar);
