import type { z } from 'zod';
import { isoInstant } from '../../core/instant.ts';
import { CALENDAR_KIND } from '../../operations/calendars/calendar-changes.ts';
import type { Calendar } from '../../store/calendars/find-calendars.ts';
import type { Api, ApiDeps } from '../deps.ts';
import { addNamedRoutes } from '../named/named-routes.ts';
import { calendar, calendarIdText, calendarInput } from './schemas.ts';

export function addCalendarRoutes(api: Api, deps: ApiDeps): void {
  addNamedRoutes(api, deps, {
    ...{ kind: CALENDAR_KIND, list: 'calendars', id: calendarIdText, input: calendarInput },
    ...{ answered: calendar, answer: answerCalendar },
    resolve: ({ description, dates, validUntil }) => ({ content: { description, dates, validUntil } }),
    summaries: {
      get: 'One calendar; its ETag is its version',
      put: 'Create a calendar, or replace it whole, and move the next fires of schedules that exclude it',
      delete: 'Delete a calendar that no schedule excludes',
    },
    refusals: [],
  });
}

function answerCalendar(stored: Calendar): z.output<typeof calendar> {
  const { id, description, dates, validUntil, version, appliedVersion, updatedAt } = stored;
  const nextFiresMoved = appliedVersion === version;
  const given = { id, description, dates: [...dates], validUntil };
  return { ...given, version, updatedAt: isoInstant(updatedAt), nextFiresMoved };
}
