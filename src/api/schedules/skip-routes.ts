import { z } from 'zod';
import { type Instant, isoInstant } from '../../core/instant.ts';
import { MAX_SKIPS } from '../../core/time/skipped-fires.ts';
import { type SkipAnswer, skipFire } from '../../operations/schedules/skip-fires.ts';
import type { Api, ApiDeps } from '../deps.ts';
import { audited } from '../audit/audited.ts';
import { asUnplannable, hasNoTimesOfItsOwn } from '../occurrences/fire-time-problems.ts';
import { answeredInstant, instant, scheduleIdParams, text } from '../http/common-schemas.ts';
import { TAGS } from '../http/plugins/openapi.ts';
import { Problem, invalid, noSuchSchedule } from '../http/problem.ts';
import { BODY_PROBLEMS, json, problems } from '../http/response-schemas.ts';

const skipInput = z.strictObject({
  fireAt: instant.meta({ description: 'The fire: its nominal time, as `upcoming` answers it.' }),
  reason: text(1000).nullish().meta({ description: 'In your words, for those who read `upcoming`.' }),
});

export const skipAnswer = z.object({ fireAt: answeredInstant, skipped: z.boolean() });

export function addSkipRoutes(api: Api, deps: ApiDeps): void {
  addRoute(api, deps, {
    path: 'skip',
    skipped: true,
    operationId: 'skipFire',
    summary: 'Do not make one fire that is still to come; at its moment it is recorded as skipped',
  });
  addRoute(api, deps, {
    path: 'unskip',
    skipped: false,
    operationId: 'unskipFire',
    summary: 'Make a fire after all that was to be skipped',
  });
}

interface SkipRoute {
  path: string;
  skipped: boolean;
  operationId: string;
  summary: string;
}

function addRoute(api: Api, deps: ApiDeps, { path, skipped, operationId, summary }: SkipRoute): void {
  api.post(
    `/schedules/:id/${path}`,
    {
      config: { role: 'operator', audits: [skipped ? 'schedule.skip' : 'schedule.unskip'] },
      schema: {
        operationId,
        summary,
        tags: [TAGS.schedules],
        params: scheduleIdParams,
        body: skipInput,
        response: {
          200: json('It is so, perhaps since earlier', skipAnswer),
          ...problems(...BODY_PROBLEMS, 404, 409, 422),
        },
      },
    },
    async ({ params: { id }, body: { fireAt, reason }, caller }) => {
      const request = { scheduleId: id, fireAt, skipped, reason: reason ?? null, by: caller.name };
      const answer = await skipFire(audited(deps, { caller }), request).catch((error: unknown) => {
        throw asUnplannable(id, error);
      });
      if (answer.kind !== 'done') throw refusal(id, fireAt, answer);
      return { fireAt: isoInstant(fireAt), skipped };
    },
  );
}

function refusal(id: string, fireAt: Instant, answer: Exclude<SkipAnswer, { kind: 'done' }>): Problem {
  const notPossible = (message: string) => invalid([{ path: '/fireAt', message }], 422);
  switch (answer.kind) {
    case 'noSuchSchedule':
      return noSuchSchedule(id);
    case 'follows':
      return hasNoTimesOfItsOwn(id);
    case 'over':
      return new Problem(409, `the fire of schedule ${id} at ${isoInstant(fireAt)} is no longer to come`);
    case 'noFire': {
      const hint = answer.next === null ? '' : `; the next one after it is at ${isoInstant(answer.next)}`;
      return notPossible(`is no fire of this schedule${hint}`);
    }
    case 'tooMany':
      return notPossible(`cannot be skipped too: ${MAX_SKIPS} fires to come are skipped already`);
  }
}
