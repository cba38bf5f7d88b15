import { z } from 'zod';
import { isoInstant } from '../../core/instant.ts';
import { putLimit, removeLimit } from '../../operations/limit-changes.ts';
import { type LimitState, findLimit, listLimits } from '../../store/limits/limit-rows.ts';
import type { Api, ApiDeps } from '../deps.ts';
import { audited } from '../audit/audited.ts';
import { limitIdParams } from '../http/common-schemas.ts';
import { limitQuery, pageOf, pageSchema, scheduleCursor } from '../http/pages.ts';
import { noSuch } from '../http/problem.ts';
import { TAGS, BODY_PROBLEMS, json, nothing, problems } from '../http/response-schemas.ts';
import { idOfAnother, unexpectedBody } from '../http/also-checks.ts';
import { limit as answered, limitInput } from './schemas.ts';

const tags = [TAGS.limits];
const querystring = z.strictObject({ limit: limitQuery, cursor: scheduleCursor.optional() });

export function addLimitRoutes(api: Api, deps: ApiDeps): void {
  addReadRoutes(api, deps);
  addPutRoute(api, deps);
  addDeleteRoute(api, deps);
}

function addReadRoutes(api: Api, { database }: ApiDeps): void {
  api.get(
    '/limits',
    {
      config: { role: 'viewer', scope: 'itself' },
      schema: {
        operationId: 'listLimits',
        summary: 'List limits, by id',
        tags,
        querystring,
        response: { 200: json('A page of limits', pageSchema(answered)), ...problems(400) },
      },
    },
    async ({ query: { limit, cursor }, caller: { scope } }) => {
      const filter = { scope, after: cursor?.after, limit: limit + 1 };
      const rows = await database.run((db) => listLimits(db, filter));
      return pageOf({ rows, limit }, answerLimit, (last) => ({ after: last.id }));
    },
  );
  api.get(
    '/limits/:id',
    {
      config: { role: 'viewer', scope: { name: 'limit' } },
      schema: {
        operationId: 'getLimit',
        summary: 'One limit, and how many of its runs are under way and wait',
        tags,
        params: limitIdParams,
        response: { 200: json('The limit', answered), ...problems(400, 404) },
      },
    },
    async ({ params: { id }, caller: { scope } }) => {
      const found = await database.run((db) => findLimit(db, { id, scope }));
      if (!found) throw noSuch(`limit ${id}`);
      return answerLimit(found);
    },
  );
}

function addPutRoute(api: Api, deps: ApiDeps): void {
  api.put(
    '/limits/:id',
    {
      config: { role: 'admin', scope: { name: 'limit' }, audits: ['limit.put'], alsoCheck: idOfAnother },
      schema: {
        operationId: 'putLimit',
        summary: 'Create a limit, or replace it; a smaller `maxRunning` stops nothing that is under way',
        tags,
        params: limitIdParams,
        body: limitInput,
        response: {
          200: json('Replaced', answered),
          201: json('Created', answered),
          ...problems(...BODY_PROBLEMS),
        },
      },
    },
    async ({ params: { id }, body: { description, maxRunning }, caller }, reply) => {
      const given = { id, description, maxRunning };
      const { limit, created } = await putLimit(audited(deps, { caller }), given);
      if (created) void reply.code(201).header('Location', `/api/v1/limits/${id}`);
      return reply.send(answerLimit(limit));
    },
  );
}

function addDeleteRoute(api: Api, deps: ApiDeps): void {
  api.delete(
    '/limits/:id',
    {
      config: {
        role: 'admin',
        scope: { name: 'limit' },
        audits: ['limit.delete'],
        alsoCheck: unexpectedBody,
      },
      schema: {
        operationId: 'deleteLimit',
        summary: 'Delete a limit that no schedule and no open run names',
        tags,
        params: limitIdParams,
        response: { 204: nothing('Deleted'), ...problems(400, 404, 409) },
      },
    },
    async ({ params: { id }, caller }, reply) => {
      if (!(await removeLimit(audited(deps, { caller }), id))) throw noSuch(`limit ${id}`);
      return reply.code(204).send(null);
    },
  );
}

function answerLimit(stored: LimitState): z.output<typeof answered> {
  const { id, description, maxRunning, running, waiting, updatedAt } = stored;
  return { id, description, maxRunning, running, waiting, updatedAt: isoInstant(updatedAt) };
}
