import { isoInstant, isoOrNull } from '../../core/instant.ts';
import { type Backfilled, backfill } from '../../operations/runs/backfill.ts';
import type { Api, ApiDeps } from '../deps.ts';
import { audited } from '../audit/audited.ts';
import { emptyPeriodInBody } from '../http/also-checks.ts';
import { Problem, asUnplannable, hasNoTimesOfItsOwn, invalid, noSuch } from '../http/problem.ts';
import { TAGS, BODY_PROBLEMS, json, problems } from '../http/response-schemas.ts';
import { scheduleIdParams } from '../http/common-schemas.ts';
import { backfillInput, backfilled } from './schemas.ts';

export function addBackfillRoute(api: Api, deps: ApiDeps): void {
  api.post(
    '/schedules/:id/backfill',
    {
      config: {
        role: 'operator',
        scope: { name: 'schedule' },
        audits: ['schedule.backfill'],
        alsoCheck: emptyPeriodInBody,
      },
      schema: {
        operationId: 'backfillSchedule',
        summary:
          'Fire what a schedule, as it is now or as it was then, would have fired in a past period; paused or not',
        tags: [TAGS.schedules],
        params: scheduleIdParams,
        body: backfillInput,
        response: {
          202: json('Runs that are to be handed off now', backfilled),
          ...problems(...BODY_PROBLEMS, 404, 409, 422),
        },
      },
    },
    async ({ params: { id }, body: { from, to, limit, as }, caller }, reply) => {
      const request = { scheduleId: id, from, to, limit, as };
      const done = await backfill(audited(deps, { caller }), request).catch((error: unknown) => {
        throw asUnplannable(id, error);
      });
      return reply.code(202).send(answerBackfilled(id, done));
    },
  );
}

function answerBackfilled(id: string, done: Backfilled) {
  switch (done.kind) {
    case 'noSuchSchedule':
      throw noSuch(`schedule ${id}`);
    case 'follows':
      throw hasNoTimesOfItsOwn(id);
    case 'notWhole': {
      const message = `must be after ${isoInstant(done.since)} with "as": "then": all versions are stored only since then`;
      throw invalid([{ path: '/from', message }], 422);
    }
    case 'unplannable':
      throw new Problem(422, `version ${done.version} of schedule ${id} cannot be planned: ${done.error}`);
    case 'observed':
      throw new Problem(409, `schedule ${id} is observed then: another scheduler runs the job`);
    case 'tooLate': {
      const message = `is later than now (${isoInstant(done.now)}): only past occurrences can be backfilled`;
      throw invalid([{ path: '/to', message }], 422);
    }
    case 'done':
      return {
        created: done.created,
        existing: done.existing,
        remainingFrom: isoOrNull(done.remainingFrom),
      };
  }
}
