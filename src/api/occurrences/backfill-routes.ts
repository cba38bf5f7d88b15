import { backfill } from '../../operations/runs/backfill.ts';
import type { Api, ApiDeps } from '../deps.ts';
import { audited } from '../audit/audited.ts';
import { emptyPeriodInBody } from '../http/also-checks.ts';
import { asUnplannable } from '../http/problem.ts';
import { addRoute, json, TAGS } from '../http/routes.ts';
import { scheduleIdParams } from '../http/common-schemas.ts';
import { answersOf } from '../http/stored-answers.ts';
import { backfilled, backfillInput } from './schemas.ts';

const answered = answersOf(backfilled);

export function addBackfillRoute(api: Api, deps: ApiDeps): void {
  addRoute(api, {
    ...{ route: 'POST /schedules/:id/backfill', operationId: 'backfillSchedule' },
    config: {
      role: 'operator',
      scope: { name: 'schedule' },
      audits: ['schedule.backfill'],
      alsoCheck: emptyPeriodInBody,
    },
    summary:
      'Fire what a schedule, as it is now or as it was then, would have fired in a past period; paused or not',
    ...{ tags: [TAGS.schedules], params: scheduleIdParams, body: backfillInput },
    answers: { 202: json('Runs that are to be handed off now', backfilled) },
    refusals: [404, 409, 422],
    handler: async ({ params: { id }, body: { from, to, limit, as }, caller }, reply) => {
      const request = { scheduleId: id, from, to, limit, as };
      const done = await backfill(audited(deps, { caller }), request).catch((error: unknown) => {
        throw asUnplannable(id, error);
      });
      return reply.code(202).send(answered(done));
    },
  });
}
