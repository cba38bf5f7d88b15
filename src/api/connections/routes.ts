import { deleteConnection, putConnection, tryToPutConnection } from '../../operations/connection-changes.ts';
import { pageRoom } from '../../postgres/sql/page-room.ts';
import { findConnection, listConnections } from '../../store/connections/find-connections.ts';
import type { Api, ApiDeps } from '../deps.ts';
import { audited } from '../audit/audited.ts';
import { idOfAnother, unexpectedBody } from '../http/also-checks.ts';
import { pageOf } from '../http/pages.ts';
import { checkPreconditions, etagOf, ifMatchHeader, preconditionHeaders } from '../http/preconditions.ts';
import { noSuch } from '../http/problem.ts';
import { BODY_PROBLEMS, TAGS, json, nothing, problems } from '../http/response-schemas.ts';
import { answerConnection, answerDiff } from './answers.ts';
import { resolveConnection } from './inputs.ts';
import {
  connection,
  connectionDiff,
  connectionIdParams,
  connectionInput,
  connectionPage,
  connectionsQuery,
} from './schemas.ts';

const tags = [TAGS.connections];

export function addConnectionRoutes(api: Api, deps: ApiDeps): void {
  addListRoute(api, deps);
  addGetRoute(api, deps);
  addPutRoute(api, deps);
  addDryRunRoute(api, deps);
  addDeleteRoute(api, deps);
}

function addListRoute(api: Api, { database }: ApiDeps): void {
  api.get(
    '/connections',
    {
      config: { role: 'viewer', scope: 'itself' },
      schema: {
        operationId: 'listConnections',
        summary: 'List connections, by id',
        tags,
        querystring: connectionsQuery,
        response: { 200: json('A page of connections', connectionPage), ...problems(400) },
      },
    },
    async ({ query: { q, limit, cursor }, caller: { scope } }) => {
      const room = pageRoom();
      const filter = { scope, text: q, after: cursor?.after, limit: limit + 1, room };
      const rows = await database.run((db) => listConnections(db, filter));
      return pageOf({ rows, limit, room }, answerConnection, (last) => ({ after: last.id }));
    },
  );
}

function addGetRoute(api: Api, { database }: ApiDeps): void {
  api.get(
    '/connections/:id',
    {
      config: { role: 'viewer', scope: { name: 'connection' } },
      schema: {
        operationId: 'getConnection',
        summary: 'One connection, with its secret values masked; its ETag is its version',
        tags,
        params: connectionIdParams,
        response: { 200: json('The connection', connection), ...problems(400, 404) },
      },
    },
    async ({ params: { id } }, reply) => {
      const found = await database.run((db) => findConnection(db, id));
      if (!found) throw noSuch(`connection ${id}`);
      return reply.header('ETag', etagOf(found)).send(answerConnection(found));
    },
  );
}

function addPutRoute(api: Api, deps: ApiDeps): void {
  const { secrets, takesSecretFiles } = deps;
  api.put(
    '/connections/:id',
    {
      config: {
        role: 'admin',
        scope: { name: 'connection' },
        audits: ['connection.put'],
        alsoCheck: idOfAnother,
      },
      schema: {
        operationId: 'putConnection',
        summary:
          'Create a connection, or replace it whole: in force from the next attempt on, of open runs too',
        tags,
        params: connectionIdParams,
        headers: preconditionHeaders,
        body: connectionInput,
        response: {
          200: json('Replaced, or as it was: then its version stays', connection),
          201: json('Created', connection),
          ...problems(...BODY_PROBLEMS, 404, 409, 412, 422),
        },
      },
    },
    async ({ params: { id }, headers, body, caller }, reply) => {
      const { connection: written, change } = await putConnection(
        audited(deps, { caller }),
        id,
        (current, uid) => {
          checkPreconditions(`connection ${id}`, headers, current);
          return resolveConnection(body, { current, uid, secrets, takesSecretFiles, scope: caller.scope });
        },
      );
      if (change === 'created') void reply.code(201).header('Location', `/api/v1/connections/${id}`);
      return reply.header('ETag', etagOf(written)).send(answerConnection(written));
    },
  );
}

function addDryRunRoute(api: Api, { database, secrets, takesSecretFiles }: ApiDeps): void {
  api.post(
    '/connections/:id/dry-run',
    {
      config: { role: 'admin', scope: { name: 'connection' }, audits: [], alsoCheck: idOfAnother },
      schema: {
        operationId: 'tryConnection',
        summary: 'What PUT would change; changes nothing',
        tags,
        params: connectionIdParams,
        body: connectionInput,
        response: {
          200: json('What PUT would make of the connection', connectionDiff),
          ...problems(...BODY_PROBLEMS, 404, 409, 422),
        },
      },
    },
    async ({ params: { id }, body, caller: { scope } }) => {
      const put = await tryToPutConnection({ database, secrets, scope }, id, (current, uid) =>
        resolveConnection(body, { current, uid, secrets, takesSecretFiles, scope }),
      );
      return answerDiff(put);
    },
  );
}

function addDeleteRoute(api: Api, deps: ApiDeps): void {
  api.delete(
    '/connections/:id',
    {
      config: {
        role: 'admin',
        scope: { name: 'connection' },
        audits: ['connection.delete'],
        alsoCheck: unexpectedBody,
      },
      schema: {
        operationId: 'deleteConnection',
        summary: 'Delete a connection that no schedule and no open run names',
        tags,
        params: connectionIdParams,
        headers: ifMatchHeader,
        response: { 204: nothing('Deleted'), ...problems(400, 404, 409, 412) },
      },
    },
    async ({ params: { id }, headers: { 'if-match': match }, caller }, reply) => {
      const deleted = await deleteConnection(audited(deps, { caller }), id, (current) =>
        checkPreconditions(`connection ${id}`, { 'if-match': match }, current),
      );
      if (!deleted) throw noSuch(`connection ${id}`);
      return reply.code(204).send(null);
    },
  );
}
