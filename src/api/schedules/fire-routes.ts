import { z } from 'zod';
import { BodyTooLong } from '../../core/http/body-template.ts';
import { fireManually } from '../../operations/runs/manual-fire.ts';
import type { Api, ApiDeps } from '../deps.ts';
import { audited } from '../audit/entries.ts';
import { asUnplannable, invalid } from '../http/problem.ts';
import { answerRun, run } from '../runs/answers.ts';
import { addRoute, json, TAGS } from '../http/routes.ts';
import { answeredInstant, instant, scheduleIdParams, text } from '../http/common-schemas.ts';
import { isoInstant } from '../../core/instant.ts';
import { skipFire } from '../../operations/schedules/skip-fires.ts';

const fireInput = z
  .strictObject({
    payload: z.unknown().optional().describe('Instead of the schedule’s payload, unless null.'),
  })
  .optional();

const fireHeaders = z.object({
  'Idempotency-Key': z
    .string()
    .regex(/^[\x20-\x7e]{1,255}$/, { error: 'must be 1 to 255 printable characters' })
    .optional()
    .describe('Unique per schedule: the same key with the same body answers the run it made.'),
});

export function addFireRoute(api: Api, deps: ApiDeps): void {
  addRoute(api, {
    route: 'POST /schedules/:id/fire',
    operationId: 'fireSchedule',
    config: { role: 'operator', scope: { name: 'schedule' }, pace: 'prompt', audits: ['schedule.fire'] },
    summary: 'Fire a schedule now, paused or not',

    'x-body-optional': true,
    tags: [TAGS.schedules],
    params: scheduleIdParams,
    headers: fireHeaders,
    body: fireInput,
    answers: {
      200: json('The run that this key made before', run),
      202: json('A new run, not yet handed off', run),
    },
    refusals: [404, 422],
    handler: async ({ params: { id }, headers, json: sent, caller }, reply) => {
      const payload = sent?.payloads.get('/payload') ?? null;
      const fired = await fireManually(audited(deps, { caller }), {
        scheduleId: id,
        payload: payload === 'null' ? null : payload,
        key: headers['idempotency-key'] ?? null,
      }).catch(refuseTooLong);
      return reply
        .code(fired.isNew ? 202 : 200)
        .header('Location', `/api/v1/runs/${fired.run.id}`)
        .send(answerRun(fired.run));
    },
  });
}

function refuseTooLong(error: unknown): never {
  if (!(error instanceof BodyTooLong)) throw error;
  throw invalid([{ path: '/payload', message: `cannot be sent: ${error.message}` }]);
}

const skipInput = z.strictObject({
  fireAt: instant.describe('The fire: its nominal time, as `upcoming` answers it.'),
  reason: text(1000).nullish().describe('In your words, for those who read `upcoming`.'),
});

export const skipAnswer = z.object({ fireAt: answeredInstant, skipped: z.boolean() });

export function addSkipRoutes(api: Api, deps: ApiDeps): void {
  const recorded = 'at its moment it is recorded as skipped';
  addSkipRoute(api, deps, 'skip', `Do not make one fire that is still to come; ${recorded}`);
  addSkipRoute(api, deps, 'unskip', 'Make a fire after all that was to be skipped');
}

function addSkipRoute(api: Api, deps: ApiDeps, word: 'skip' | 'unskip', summary: string): void {
  const skipped = word === 'skip';
  addRoute(api, {
    route: `POST /schedules/:id/${word}`,
    operationId: `${word}Fire`,
    summary,
    config: { role: 'operator', scope: { name: 'schedule' }, audits: [`schedule.${word}`] },
    tags: [TAGS.schedules],
    params: scheduleIdParams,
    body: skipInput,
    answers: { 200: json('It is so, perhaps since earlier', skipAnswer) },
    refusals: [404, 409, 422],
    handler: async ({ params: { id }, body: { fireAt, reason }, caller }) => {
      const request = { scheduleId: id, fireAt, skipped, reason: reason ?? null, by: caller.name };
      await skipFire(audited(deps, { caller }), request).catch((error: unknown) => {
        throw asUnplannable(id, error);
      });
      return { fireAt: isoInstant(fireAt), skipped };
    },
  });
}
