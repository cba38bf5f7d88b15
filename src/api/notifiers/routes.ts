import { z } from 'zod';
import { ALERT_KINDS } from '../../core/alerts/alert.ts';
import { MAX_INTERVAL_SECONDS } from '../../core/instant.ts';
import { answeredInstant, ignored, notifierIdText, text, whole } from '../http/common-schemas.ts';
import { LABEL } from '../http/filter-schemas.ts';
import { type Filling, answeredChannel, CHANNEL_SETUPS, channelInput } from './channel-setups.ts';
import { type NotifierContent, NOTIFIER_KIND, testNotifier } from '../../operations/notifier-changes.ts';
import { findRun } from '../../store/runs/search/find-runs.ts';
import { tooMany } from '../access/access.ts';
import { audited } from '../audit/entries.ts';
import type { Api, ApiDeps } from '../deps.ts';
import { unexpectedBody } from '../http/request-checks.ts';
import { type Fault, invalid, noSuch, unavailable } from '../http/problem.ts';
import { addRoute, answersOf, json, TAGS } from '../http/routes.ts';
import { type Resolving, addNamedRoutes } from '../named/named-routes.ts';
import { answerRun, run } from '../runs/answers.ts';
import type { StoredNotifier } from '../../store/notifiers/rows.ts';
import type { HandoffTarget } from '../../core/schedules/schedule.ts';
import { sealTarget } from '../../core/schedules/target-secrets.ts';
import { NO_KEY } from '../targets/inputs.ts';
import { fileRules } from '../targets/secret-files.ts';

const MAX_FILTERED = 100;

const kinds = z
  .array(z.enum(ALERT_KINDS))
  .min(1)
  .refine((list) => new Set(list).size === list.length, { error: 'must not have a kind twice' })
  .meta({
    description:
      'What it tells of. `failed`: a run ended failed, unknown or abandoned. `late`: no success in time. `unstarted`, `slow`, ' +
      '`tooFast`, `result`: `expect` did not hold. `missed`: an occurrence was not made in time. `paused`: by firelock. `error`: it cannot be planned. ' +
      '`calendar`: one that it excludes ends within 90 days, or has ended.',
    example: ['failed', 'late'],
  });

const patterns = z.array(
  z.string().regex(/^(\*|[A-Za-z0-9][A-Za-z0-9._-]{0,127}\*?)$/, {
    error: 'must be the id of a schedule, or its beginning and a *',
  }),
);
const labels = z.array(text(320).regex(new RegExp(LABEL), { error: 'must be key:value' }));

const filter = z
  .strictObject({
    ids: patterns
      .max(MAX_FILTERED)
      .default([])
      .meta({
        description:
          'Ids, or their beginnings and a `*`: one of them fits. A caller with a scope must name some, all within it.',
        example: ['billing.*'],
      }),
    label: labels
      .max(MAX_FILTERED)
      .default([])
      .meta({ description: '`key:value`: the schedule has all of them.', example: ['team:billing'] }),
  })
  .meta({ id: 'NotifierFilter', description: 'Of which schedules it tells. Empty: of all.' });

const fields = {
  description: text(1000).nullable(),
  enabled: z.boolean().describe('false: firelock sends it no messages.'),
  on: kinds,
  remindSeconds: whole(60, MAX_INTERVAL_SECONDS).nullable().meta({
    description: 'While something stays broken, firelock tells it again after so many seconds. Null: never.',
    example: 86_400,
  }),
  afterFailures: whole(1, 100).meta({
    description:
      'firelock tells it of `failed` when so many runs in a row have ended failed, unknown or abandoned; of the recovery, only if it told it of the failure.',
    example: 1,
  }),
  fallback: notifierIdText
    .nullable()
    .meta({ description: 'The notifier that gets what could not be delivered.', example: null }),
};

const DAY_SECONDS = 86_400;

const notifierInput = z
  .strictObject({
    id: notifierIdText.optional(),
    description: fields.description.default(null),
    enabled: fields.enabled.default(true),
    on: fields.on.default([...ALERT_KINDS]),
    filter: filter.prefault({}),
    channel: channelInput,
    remindSeconds: fields.remindSeconds.default(DAY_SECONDS),
    afterFailures: fields.afterFailures.default(1),
    fallback: fields.fallback.default(null),
    version: ignored,
    updatedAt: ignored,
  })
  .meta({ id: 'NotifierDefinition' });
type NotifierInput = z.output<typeof notifierInput>;

export const notifier = z
  .object({
    id: notifierIdText,
    ...fields,
    filter: z.object({ ids: z.array(z.string()), label: z.array(z.string()) }),
    channel: answeredChannel,
    version: z.int(),
    updatedAt: answeredInstant,
  })
  .meta({ id: 'Notifier', description: 'Whom firelock tells when something breaks, and once more when it heals.' });

export function addNotifierRoutes(api: Api, deps: ApiDeps): void {
  addNamedRoutes(api, deps, {
    kind: NOTIFIER_KIND,
    list: 'notifiers',
    id: notifierIdText,
    input: notifierInput,
    answered: notifier,
    answer: answerNotifier,
    resolve: resolveNotifier,
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
    route: 'POST /notifiers/:id/test',
    operationId: 'testNotifier',
    config: {
      role: 'admin',
      scope: { name: 'notifier' },
      audits: ['notifier.test'],
      alsoCheck: unexpectedBody,
    },
    summary: 'Send a message of the event `test` at once; the run says what became of it',
    tags: [TAGS.notifiers],
    params: z.strictObject({ id: notifierIdText }),
    answers: { 202: json('The run of the message', run) },
    refusals: [404],
    handler: async ({ params: { id }, caller }, reply) => {
      const tested = await testNotifier(audited(deps, { caller }), id);
      if (tested === null) throw noSuch(`notifier ${id}`);
      if ('waitMs' in tested) throw tooMany('too many tests of this notifier', Math.ceil(tested.waitMs / 1000));
      const { runId } = tested;
      const stored = await deps.database.run((db) => findRun(db, runId, caller.scope));
      if (!stored) throw unavailable('the message was recorded, and cannot be found; list the runs of the notifier');
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
    stored: before,
    mail: { sends: sendsMail, domains: mailToDomains },
    files: fileRules(deps, scope),
    faults: [],
    impossible: [],
  };
  const given: HandoffTarget = targetOf(channel as never, from);
  if (from.faults.length > 0) throw invalid(from.faults);
  const { target, unsealed } = sealTarget(given, { ring, uid, before });
  const faults = unsealed.map(({ steps }) => ({ path: placeOf(steps), message: NO_KEY }));
  return { content: { ...rest, channel: channel.type, target }, faults: [...faults, ...from.impossible] };
}
