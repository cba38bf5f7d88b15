import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Instant } from '../../core/instant.ts';
import { type Definition, SCHEDULE_STATUSES, type Schedule } from '../../core/schedules/schedule.ts';
import { deleteSchedule } from '../../operations/schedule-changes.ts';
import type { ScheduleChange } from '../../operations/schedule-writes.ts';
import { findSchedule, listSchedules } from '../../store/schedules/find-schedules.ts';
import type { Api, ApiDeps } from '../deps.ts';
import { fireFaults } from './fire-faults.ts';
import { isObject } from '../http/json/json-body.ts';
import { limitQuery, pageOf, pageSchema, scheduleCursor } from '../http/pages.ts';
import { TAGS } from '../http/plugins/openapi.ts';
import { checkPreconditions, ifMatchHeader, preconditionHeaders } from './preconditions.ts';
import { type Fault, invalid, noSuchSchedule } from '../http/problem.ts';
import { answerSchedule, etagOf } from './answers.ts';
import { type ResolvedInput, resolveInput, resolvePatch } from './inputs.ts';
import { changeOrRefuse } from './writes.ts';
import { BODY_PROBLEMS, json, nothing, problems } from '../http/response-schemas.ts';
import { labelQuery, queryBoolean, scheduleIdParams, text, wordList } from '../http/common-schemas.ts';
import { schedule, scheduleInput, schedulePatch } from './schemas.ts';

const tags = [TAGS.schedules];

export function addScheduleRoutes(api: Api, deps: ApiDeps): void {
  addListRoute(api, deps);
  addGetRoute(api, deps);
  addPutRoute(api, deps);
  addPatchRoute(api, deps);
  addDeleteRoute(api, deps);
}

const listQuery = z.strictObject({
  enabled: queryBoolean.optional(),
  status: wordList(SCHEDULE_STATUSES).optional(),
  label: labelQuery.optional(),
  q: text(1000).optional().meta({ description: 'Part of the id or the description, in any letter case.' }),
  limit: limitQuery,
  cursor: scheduleCursor.optional(),
});

function addListRoute(api: Api, { database }: ApiDeps): void {
  api.get(
    '/schedules',
    {
      config: { role: 'viewer' },
      schema: {
        operationId: 'listSchedules',
        summary: 'List schedules, by id',
        tags,
        querystring: listQuery,
        response: { 200: json('A page of schedules', pageSchema(schedule)), ...problems(400) },
      },
    },
    async ({ query: { enabled, status, label, q, limit, cursor } }) => {
      const filter = { enabled, statuses: status, labels: label, text: q, after: cursor?.after };
      const rows = await database.run((db) => listSchedules(db, { ...filter, limit: limit + 1 }));
      return pageOf(rows, limit, answerSchedule, (last) => ({ after: last.id }));
    },
  );
}

function addGetRoute(api: Api, { database }: ApiDeps): void {
  api.get(
    '/schedules/:id',
    {
      config: { role: 'viewer' },
      schema: {
        operationId: 'getSchedule',
        summary: 'One schedule; its ETag is its version',
        tags,
        params: scheduleIdParams,
        response: { 200: json('The schedule', schedule), ...problems(400, 404) },
      },
    },
    async ({ params: { id } }, reply) => {
      const found = await database.run((db) => findSchedule(db, id));
      if (!found) throw noSuchSchedule(id);
      return reply.header('ETag', etagOf(found)).send(answerSchedule(found));
    },
  );
}

function addPutRoute(api: Api, deps: ApiDeps): void {
  api.put(
    '/schedules/:id',
    {
      config: { role: 'admin', alsoCheck: idOfAnother },
      schema: {
        operationId: 'putSchedule',
        summary: 'Create a schedule, or replace it whole',
        tags,
        params: scheduleIdParams,
        headers: preconditionHeaders,
        body: scheduleInput,
        response: {
          200: json('Replaced, or as it was: then its version stays', schedule),
          201: json('Created', schedule),
          ...problems(...BODY_PROBLEMS, 404, 412, 422),
        },
      },
    },
    async ({ params: { id }, headers, body, json: sent, caller: { name: by } }, reply) => {
      const { schedule: written, change } = await changeOne(deps, { id, by }, (current, now) => {
        checkPreconditions(id, headers, current);
        const resolved = resolveInput(body, sent?.payloads.get('/payload'), current);
        return accepted(resolved, { id, current, now });
      });
      if (change === 'created') void reply.code(201).header('Location', `/api/v1/schedules/${id}`);
      return reply.header('ETag', etagOf(written)).send(answerSchedule(written));
    },
  );
}

function addPatchRoute(api: Api, deps: ApiDeps): void {
  api.patch(
    '/schedules/:id',
    {
      config: { role: 'admin', alsoCheck: idOfAnother },
      schema: {
        operationId: 'patchSchedule',
        summary: 'Change a schedule by JSON Merge Patch',
        tags,
        consumes: ['application/merge-patch+json', 'application/json'],
        params: scheduleIdParams,
        headers: ifMatchHeader,
        body: schedulePatch,
        response: {
          200: json('Changed, or as it was: then its version stays', schedule),
          ...problems(...BODY_PROBLEMS, 404, 412, 422),
        },
      },
    },
    async ({ params: { id }, headers: { 'if-match': match }, json: sent, caller: { name: by } }, reply) => {
      const { schedule: written } = await changeOne(deps, { id, by }, (current, now) => {
        checkPreconditions(id, { 'if-match': match }, current);
        if (!current) throw noSuchSchedule(id);
        const resolved = resolvePatch(sent?.value, sent?.payloads.get('/payload'), current);
        return accepted(resolved, { id, current, now });
      });
      return reply.header('ETag', etagOf(written)).send(answerSchedule(written));
    },
  );
}

function addDeleteRoute(api: Api, deps: ApiDeps): void {
  api.delete(
    '/schedules/:id',
    {
      config: { role: 'admin', alsoCheck: unexpectedBody },
      schema: {
        operationId: 'deleteSchedule',
        summary:
          'Delete a schedule that no other follows; its runs stay readable, and open ones are abandoned',
        tags,
        params: scheduleIdParams,
        headers: ifMatchHeader,
        response: { 204: nothing('Deleted'), ...problems(400, 404, 409, 412) },
      },
    },
    async ({ params: { id }, headers: { 'if-match': match }, caller: { name: by } }, reply) => {
      const deleted = await deleteSchedule(deps, { id, by }, (current) =>
        checkPreconditions(id, { 'if-match': match }, current),
      );
      if (!deleted) throw noSuchSchedule(id);
      return reply.code(204).send(null);
    },
  );
}

async function changeOne(
  deps: ApiDeps,
  of: Pick<ScheduleChange, 'id' | 'by'>,
  decide: ScheduleChange['decide'],
) {
  const [changed] = await changeOrRefuse(deps, [{ ...of, decide }], () => '');
  if (!changed) throw new Error(`the change of schedule ${of.id} was not answered`);
  return changed;
}

/** @throws Problem 400, 422 */
function accepted(
  { definition, faults }: ResolvedInput,
  context: { id: string; current: Schedule | null; now: Instant },
): Definition {
  if (faults.length > 0) throw invalid(faults);
  const barred = fireFaults(definition, context);
  if (barred.length > 0) throw invalid(barred, 422);
  return definition;
}

function idOfAnother({ params, body }: FastifyRequest): Fault[] {
  const { id } = params as { id: string };
  if (!isObject(body) || body['id'] === undefined || body['id'] === id) return [];
  return [{ path: '/id', message: 'must be the id of the path' }];
}

function unexpectedBody({ body }: FastifyRequest): Fault[] {
  return body === undefined ? [] : [{ path: '', message: 'must be absent: this call takes none' }];
}
