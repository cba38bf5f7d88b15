import { z } from 'zod';
import { fireManually } from '../../operations/runs/manual-fire.ts';
import type { Api, ApiDeps } from '../deps.ts';
import { audited } from '../audit/audited.ts';
import { TAGS } from '../http/plugins/openapi.ts';
import { Problem, noSuchSchedule } from '../http/problem.ts';
import { answerRun } from '../runs/answers.ts';
import { BODY_PROBLEMS, json, problems } from '../http/response-schemas.ts';
import { scheduleIdParams } from '../http/common-schemas.ts';
import { run } from '../runs/schemas.ts';

const fireInput = z
  .strictObject({
    payload: z.unknown().optional().meta({ description: 'Instead of the schedule’s payload, unless null.' }),
  })
  .optional();

const fireHeaders = z.object({
  'Idempotency-Key': z
    .string()
    .regex(/^[\x20-\x7e]{1,255}$/, { error: 'must be 1 to 255 printable characters' })
    .optional()
    .meta({ description: 'Unique per schedule: the same key with the same body answers the run it made.' }),
});

export function addFireRoute(api: Api, deps: ApiDeps): void {
  api.post(
    '/schedules/:id/fire',
    {
      config: { role: 'operator', pace: 'prompt', audits: ['schedule.fire'] },
      schema: {
        'x-body-optional': true,
        operationId: 'fireSchedule',
        summary: 'Fire a schedule now, paused or not',
        tags: [TAGS.schedules],
        params: scheduleIdParams,
        headers: fireHeaders,
        body: fireInput,
        response: {
          200: json('The run that this key made before', run),
          202: json('A new run, not yet handed off', run),
          ...problems(...BODY_PROBLEMS, 404, 422),
        },
      },
    },
    async ({ params: { id }, headers, json: sent, caller }, reply) => {
      const payload = sent?.payloads.get('/payload') ?? null;
      const fired = await fireManually(audited(deps, { caller }), {
        scheduleId: id,
        payload: payload === 'null' ? null : payload,
        key: headers['idempotency-key'] ?? null,
      });
      if (fired.kind === 'noSuchSchedule') throw noSuchSchedule(id);
      if (fired.kind === 'keyOfAnotherBody') {
        throw new Problem(422, 'this Idempotency-Key was used with another body');
      }
      return reply
        .code(fired.kind === 'created' ? 202 : 200)
        .header('Location', `/api/v1/runs/${fired.run.id}`)
        .send(answerRun(fired.run));
    },
  );
}
