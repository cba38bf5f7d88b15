import type { z } from 'zod';
import { isoInstant } from '../../core/instant.ts';
import { deleteCalendar, putCalendar } from '../../operations/calendars/calendar-changes.ts';
import { pageRoom } from '../../postgres/sql/page-room.ts';
import { type Calendar, findCalendar, listCalendars } from '../../store/calendars/find-calendars.ts';
import type { Api, ApiDeps } from '../deps.ts';
import { audited } from '../audit/audited.ts';
import { pageOf } from '../http/pages.ts';
import { noSuch } from '../http/problem.ts';
import { TAGS, BODY_PROBLEMS, json, nothing, problems } from '../http/response-schemas.ts';
import { checkPreconditions, etagOf, ifMatchHeader, preconditionHeaders } from '../http/preconditions.ts';
import { idOfAnother, unexpectedBody } from '../http/also-checks.ts';
import { calendar, calendarIdParams, calendarInput, calendarPage, calendarsQuery } from './schemas.ts';

const tags = [TAGS.calendars];

export function addCalendarRoutes(api: Api, deps: ApiDeps): void {
  addListRoute(api, deps);
  addGetRoute(api, deps);
  addPutRoute(api, deps);
  addDeleteRoute(api, deps);
}

function addListRoute(api: Api, { database }: ApiDeps): void {
  api.get(
    '/calendars',
    {
      config: { role: 'viewer', scope: 'itself' },
      schema: {
        operationId: 'listCalendars',
        summary: 'List calendars, by id',
        tags,
        querystring: calendarsQuery,
        response: { 200: json('A page of calendars', calendarPage), ...problems(400) },
      },
    },
    async ({ query: { q, limit, cursor }, caller: { scope } }) => {
      const room = pageRoom();
      const filter = { scope, text: q, after: cursor?.after, limit: limit + 1, room };
      const rows = await database.run((db) => listCalendars(db, filter));
      return pageOf({ rows, limit, room }, answerCalendar, (last) => ({ after: last.id }));
    },
  );
}

function addGetRoute(api: Api, { database }: ApiDeps): void {
  api.get(
    '/calendars/:id',
    {
      config: { role: 'viewer', scope: { name: 'calendar' } },
      schema: {
        operationId: 'getCalendar',
        summary: 'One calendar; its ETag is its version',
        tags,
        params: calendarIdParams,
        response: { 200: json('The calendar', calendar), ...problems(400, 404) },
      },
    },
    async ({ params: { id } }, reply) => {
      const found = await database.run((db) => findCalendar(db, id));
      if (!found) throw noSuch(`calendar ${id}`);
      return reply.header('ETag', etagOf(found)).send(answerCalendar(found));
    },
  );
}

function addPutRoute(api: Api, deps: ApiDeps): void {
  api.put(
    '/calendars/:id',
    {
      config: {
        role: 'admin',
        scope: { name: 'calendar' },
        audits: ['calendar.put'],
        alsoCheck: idOfAnother,
      },
      schema: {
        operationId: 'putCalendar',
        summary:
          'Create a calendar, or replace it whole, and move the next fires of schedules that exclude it',
        tags,
        params: calendarIdParams,
        headers: preconditionHeaders,
        body: calendarInput,
        response: {
          200: json('Replaced, or as it was: then its version stays', calendar),
          201: json('Created', calendar),
          ...problems(...BODY_PROBLEMS, 404, 412),
        },
      },
    },
    async ({ params: { id }, headers, body: { description, dates }, caller }, reply) => {
      const input = { id, description, dates };
      const { calendar: written, change } = await putCalendar(audited(deps, { caller }), input, (current) =>
        checkPreconditions(`calendar ${id}`, headers, current),
      );
      if (change === 'created') void reply.code(201).header('Location', `/api/v1/calendars/${id}`);
      return reply.header('ETag', etagOf(written)).send(answerCalendar(written));
    },
  );
}

function addDeleteRoute(api: Api, deps: ApiDeps): void {
  api.delete(
    '/calendars/:id',
    {
      config: {
        role: 'admin',
        scope: { name: 'calendar' },
        audits: ['calendar.delete'],
        alsoCheck: unexpectedBody,
      },
      schema: {
        operationId: 'deleteCalendar',
        summary: 'Delete a calendar that no schedule excludes',
        tags,
        params: calendarIdParams,
        headers: ifMatchHeader,
        response: { 204: nothing('Deleted'), ...problems(400, 404, 409, 412) },
      },
    },
    async ({ params: { id }, headers: { 'if-match': match }, caller }, reply) => {
      const deleted = await deleteCalendar(audited(deps, { caller }), id, (current) =>
        checkPreconditions(`calendar ${id}`, { 'if-match': match }, current),
      );
      if (!deleted) throw noSuch(`calendar ${id}`);
      return reply.code(204).send(null);
    },
  );
}

function answerCalendar(stored: Calendar): z.output<typeof calendar> {
  const { id, description, dates, version, appliedVersion, updatedAt } = stored;
  const nextFiresMoved = appliedVersion === version;
  return { id, description, dates: [...dates], version, updatedAt: isoInstant(updatedAt), nextFiresMoved };
}
