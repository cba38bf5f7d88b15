import { z } from 'zod';
import { NOTIFIER_KIND, type NotifierContent, testNotifier } from '../../operations/notifier-changes.ts';
import { findRun } from '../../store/runs/search/find-runs.ts';
import { tooMany } from '../access/access.ts';
import { audited } from '../audit/audited.ts';
import type { Api, ApiDeps } from '../deps.ts';
import { unexpectedBody } from '../http/also-checks.ts';
import { notifierIdText } from '../http/common-schemas.ts';
import { type Fault, invalid, noSuch, unavailable } from '../http/problem.ts';
import { addRoute, json, TAGS } from '../http/routes.ts';
import { addNamedRoutes, type Resolving } from '../named/named-routes.ts';
import { answerRun } from '../runs/answers.ts';
import { run } from '../runs/schemas.ts';
import { notifier, type NotifierInput, notifierInput } from './schemas.ts';
import type { StoredNotifier } from '../../store/notifiers/rows.ts';
import { CHANNEL_SETUPS, type Filling } from './channel-setups.ts';
import type { HandoffTarget } from '../../core/schedules/schedule.ts';
import { sealTarget } from '../../core/schedules/target-secrets.ts';
import { answersOf } from '../http/stored-answers.ts';
import { NO_KEY } from '../targets/inputs.ts';
import { fileRules } from '../targets/secret-files.ts';

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
  addRoute(api, {
    ...{ route: 'POST /notifiers/:id/test', operationId: 'testNotifier' },
    config: {
      role: 'admin',
      scope: { name: 'notifier' },
      audits: ['notifier.test'],
      alsoCheck: unexpectedBody,
    },
    summary: 'Send a message of the event `test` at once; the run says what became of it',
    ...{ tags: [TAGS.notifiers], params: z.strictObject({ id: notifierIdText }) },
    ...{ answers: { 202: json('The run of the message', run) }, refusals: [404] },
    handler: async ({ params: { id }, caller }, reply) => {
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
  });
}

const answered = answersOf(notifier);

/** With its secret values masked. Answers never decrypt anything. */
function answerNotifier(stored: StoredNotifier): z.output<typeof notifier> {
  const channel = CHANNEL_SETUPS[stored.channel].answerOf(stored.target as never);
  const { ids, label } = stored.filter;
  return answered({ ...stored, channel, filter: { ids: [...ids], label: [...label] } });
}

/**
 * A notifier as it was sent, in the form in which it is stored. Values that were sent masked are filled in from the stored notifier;
 * secret values are encrypted. `faults`: of values that cannot be. @throws Problem 400
 */
function resolveNotifier(
  { id: _id, version: _version, updatedAt: _updatedAt, channel, ...rest }: NotifierInput,
  { current, uid, scope, deps }: Resolving<StoredNotifier>,
): { content: NotifierContent; faults: Fault[] } {
  const { secrets: ring, sendsMail, mailToDomains } = deps;
  const before = current?.target ?? null;
  const { targetOf, placeOf } = CHANNEL_SETUPS[channel.type];
  const from: Filling = {
    ...{ stored: before, mail: { sends: sendsMail, domains: mailToDomains } },
    ...{ files: fileRules(deps, scope), faults: [], impossible: [] },
  };
  const given: HandoffTarget = targetOf(channel as never, from);
  if (from.faults.length > 0) throw invalid(from.faults);
  const { target, unsealed } = sealTarget(given, { ring, uid, before });
  const faults = unsealed.map(({ steps }) => ({ path: placeOf(steps), message: NO_KEY }));
  return { content: { ...rest, channel: channel.type, target }, faults: [...faults, ...from.impossible] };
}
