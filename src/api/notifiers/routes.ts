import { z } from 'zod';
import { NOTIFIER_KIND, testNotifier } from '../../operations/notifier-changes.ts';
import { findRun } from '../../store/runs/search/find-runs.ts';
import { tooMany } from '../access/access.ts';
import { audited } from '../audit/audited.ts';
import type { Api, ApiDeps } from '../deps.ts';
import { unexpectedBody } from '../http/also-checks.ts';
import { notifierIdText } from '../http/common-schemas.ts';
import { noSuch, unavailable } from '../http/problem.ts';
import { TAGS, json, problems } from '../http/response-schemas.ts';
import { addNamedRoutes } from '../named/named-routes.ts';
import { answerRun } from '../runs/answers.ts';
import { run } from '../runs/schemas.ts';
import { answerNotifier } from './answers.ts';
import { resolveNotifier } from './inputs.ts';
import { notifier, notifierInput } from './schemas.ts';

export function addNotifierRoutes(api: Api, deps: ApiDeps): void {
  addNamedRoutes(api, deps, {
    ...{ kind: NOTIFIER_KIND, list: 'notifiers', id: notifierIdText, input: notifierInput },
    ...{ answered: notifier, answer: answerNotifier, resolve: resolveNotifier },
    summaries: {
      get: 'One notifier, with its secret values masked; its ETag is its version',
      put: 'Create a notifier, or replace it whole: messages recorded from then on go where it says',
      delete: 'Delete a notifier that is no other one’s fallback; its open messages end as abandoned',
    },
    refusals: [422],
  });
  addTestRoute(api, deps);
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
        tags: [TAGS.notifiers],
        params: z.strictObject({ id: notifierIdText }),
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
