import {
  deleteNotifier,
  putNotifier,
  testNotifier,
  tryToPutNotifier,
} from '../../operations/notifier-changes.ts';
import { pageRoom } from '../../postgres/sql/page-room.ts';
import { findNotifier, listNotifiers } from '../../store/notifiers/find-notifiers.ts';
import { findRun } from '../../store/runs/search/find-runs.ts';
import { tooMany } from '../access/access.ts';
import { audited } from '../audit/audited.ts';
import type { Api, ApiDeps } from '../deps.ts';
import { idOfAnother, unexpectedBody } from '../http/also-checks.ts';
import { pageOf } from '../http/pages.ts';
import { checkPreconditions, etagOf, ifMatchHeader, preconditionHeaders } from '../http/preconditions.ts';
import { noSuch, unavailable } from '../http/problem.ts';
import { BODY_PROBLEMS, TAGS, json, nothing, problems } from '../http/response-schemas.ts';
import { answerRun } from '../runs/answers.ts';
import { run } from '../runs/schemas.ts';
import { answerNotifier, answerNotifierDiff } from './answers.ts';
import { resolveNotifier } from './inputs.ts';
import {
  notifier,
  notifierDiff,
  notifierIdParams,
  notifierInput,
  notifierPage,
  notifiersQuery,
} from './schemas.ts';

const tags = [TAGS.notifiers];

export function addNotifierRoutes(api: Api, deps: ApiDeps): void {
  addListRoute(api, deps);
  addGetRoute(api, deps);
  addPutRoute(api, deps);
  addDryRunRoute(api, deps);
  addTestRoute(api, deps);
  addDeleteRoute(api, deps);
}

function addListRoute(api: Api, { database }: ApiDeps): void {
  api.get(
    '/notifiers',
    {
      config: { role: 'viewer', scope: 'itself' },
      schema: {
        operationId: 'listNotifiers',
        summary: 'List notifiers, by id',
        tags,
        querystring: notifiersQuery,
        response: { 200: json('A page of notifiers', notifierPage), ...problems(400) },
      },
    },
    async ({ query: { q, limit, cursor }, caller: { scope } }) => {
      const room = pageRoom();
      const filter = { scope, text: q, after: cursor?.after, limit: limit + 1, room };
      const rows = await database.run((db) => listNotifiers(db, filter));
      return pageOf({ rows, limit, room }, answerNotifier, (last) => ({ after: last.id }));
    },
  );
}

function addGetRoute(api: Api, { database }: ApiDeps): void {
  api.get(
    '/notifiers/:id',
    {
      config: { role: 'viewer', scope: { name: 'notifier' } },
      schema: {
        operationId: 'getNotifier',
        summary: 'One notifier, with its secret values masked; its ETag is its version',
        tags,
        params: notifierIdParams,
        response: { 200: json('The notifier', notifier), ...problems(400, 404) },
      },
    },
    async ({ params: { id } }, reply) => {
      const found = await database.run((db) => findNotifier(db, id));
      if (!found) throw noSuch(`notifier ${id}`);
      return reply.header('ETag', etagOf(found)).send(answerNotifier(found));
    },
  );
}

function addPutRoute(api: Api, deps: ApiDeps): void {
  const { secrets, sendsMail, mailToDomains } = deps;
  api.put(
    '/notifiers/:id',
    {
      config: {
        role: 'admin',
        scope: { name: 'notifier' },
        audits: ['notifier.put'],
        alsoCheck: idOfAnother,
      },
      schema: {
        operationId: 'putNotifier',
        summary: 'Create a notifier, or replace it whole: messages recorded from then on go where it says',
        tags,
        params: notifierIdParams,
        headers: preconditionHeaders,
        body: notifierInput,
        response: {
          200: json('Replaced, or as it was: then its version stays', notifier),
          201: json('Created', notifier),
          ...problems(...BODY_PROBLEMS, 404, 412, 422),
        },
      },
    },
    async ({ params: { id }, headers, body, caller }, reply) => {
      const { notifier: written, change } = await putNotifier(
        audited(deps, { caller }),
        id,
        (current, uid) => {
          checkPreconditions(`notifier ${id}`, headers, current);
          return resolveNotifier(body, { current, uid, secrets, sendsMail, mailToDomains });
        },
      );
      if (change === 'created') void reply.code(201).header('Location', `/api/v1/notifiers/${id}`);
      return reply.header('ETag', etagOf(written)).send(answerNotifier(written));
    },
  );
}

function addDryRunRoute(api: Api, { database, secrets, sendsMail, mailToDomains }: ApiDeps): void {
  api.post(
    '/notifiers/:id/dry-run',
    {
      config: { role: 'admin', scope: { name: 'notifier' }, audits: [], alsoCheck: idOfAnother },
      schema: {
        operationId: 'tryNotifier',
        summary: 'What PUT would change; changes nothing',
        tags,
        params: notifierIdParams,
        body: notifierInput,
        response: {
          200: json('What PUT would make of the notifier', notifierDiff),
          ...problems(...BODY_PROBLEMS, 404, 422),
        },
      },
    },
    async ({ params: { id }, body, caller: { scope } }) =>
      answerNotifierDiff(
        await tryToPutNotifier({ database, scope }, id, (current, uid) =>
          resolveNotifier(body, { current, uid, secrets, sendsMail, mailToDomains }),
        ),
      ),
  );
}

function addTestRoute(api: Api, deps: ApiDeps): void {
  api.post(
    '/notifiers/:id/test',
    {
      config: {
        role: 'admin',
        scope: { name: 'notifier' },
        audits: ['notifier.test'],
        alsoCheck: unexpectedBody,
      },
      schema: {
        operationId: 'testNotifier',
        summary: 'Send a message of the event `test` at once; the run says what became of it',
        tags,
        params: notifierIdParams,
        response: { 202: json('The run of the message', run), ...problems(400, 404) },
      },
    },
    async ({ params: { id }, caller }, reply) => {
      const tested = await testNotifier(audited(deps, { caller }), id);
      if (tested === null) throw noSuch(`notifier ${id}`);
      if ('waitMs' in tested)
        throw tooMany('too many tests of this notifier', Math.ceil(tested.waitMs / 1000));
      const { runId } = tested;
      const stored = await deps.database.run((db) => findRun(db, runId, caller.scope));
      if (!stored)
        throw unavailable('the message was recorded, and cannot be found; list the runs of the notifier');
      return reply.code(202).header('Location', `/api/v1/runs/${runId}`).send(answerRun(stored));
    },
  );
}

function addDeleteRoute(api: Api, deps: ApiDeps): void {
  api.delete(
    '/notifiers/:id',
    {
      config: {
        role: 'admin',
        scope: { name: 'notifier' },
        audits: ['notifier.delete'],
        alsoCheck: unexpectedBody,
      },
      schema: {
        operationId: 'deleteNotifier',
        summary: 'Delete a notifier that is no other one’s fallback; its open messages end as abandoned',
        tags,
        params: notifierIdParams,
        headers: ifMatchHeader,
        response: { 204: nothing('Deleted'), ...problems(400, 404, 409, 412) },
      },
    },
    async ({ params: { id }, headers: { 'if-match': match }, caller }, reply) => {
      const deleted = await deleteNotifier(audited(deps, { caller }), id, (current) =>
        checkPreconditions(`notifier ${id}`, { 'if-match': match }, current),
      );
      if (!deleted) throw noSuch(`notifier ${id}`);
      return reply.code(204).send(null);
    },
  );
}
