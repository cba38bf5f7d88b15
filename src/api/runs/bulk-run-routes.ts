import { z } from 'zod';
import { actOnMatchingRuns } from '../../operations/runs/bulk-runs.ts';
import type { Api, ApiDeps } from '../deps.ts';
import { audited } from '../audit/audited.ts';
import { bulkAnswer, dryRunInput, filterLabels, filterWords, namesSomething } from '../http/bulk-schemas.ts';
import { LATER_THAN_FROM } from '../http/also-checks.ts';
import { instant, runIdText, scheduleIdText, whole, ALWAYS } from '../http/common-schemas.ts';
import { addRoute, json, TAGS } from '../http/routes.ts';
import { expectBound, runStatus, runTrigger } from '../http/word-schemas.ts';

const runFilter = z
  .strictObject({
    scheduleId: scheduleIdText.optional(),
    label: filterLabels,
    batchId: runIdText.optional(),
    status: filterWords(runStatus),
    trigger: filterWords(runTrigger),
    unmet: filterWords(expectBound),
    from: instant.optional(),
    to: instant.optional(),
  })
  .superRefine(namesSomething, ALWAYS)
  .superRefine(({ from, to }, context) => {
    if (typeof from !== 'number' || typeof to !== 'number' || from < to) return;
    context.addIssue({ code: 'custom', path: ['to'], message: LATER_THAN_FROM });
  }, ALWAYS)
  .meta({
    id: 'RunFilter',
    description: 'As in `GET /runs`: all that is named must hold. `from` and `to` mean `scheduledFor`.',
    minProperties: 1,
  });

const MOST = 10_000;

const bulkInput = z.strictObject({
  action: z.enum(['retry', 'cancel']),
  filter: runFilter,
  limit: whole(1, MOST)
    .default(1000)
    .meta({ description: 'How many runs the call acts on at most, the newest first.' }),
  dryRun: dryRunInput,
});

export function addRunBulkRoute(api: Api, deps: ApiDeps): void {
  addRoute(api, {
    ...{ route: 'POST /runs/bulk', operationId: 'actOnRuns' },
    config: { role: 'operator', scope: 'itself', pace: 'slow', audits: ['runs.bulk'] },
    summary: 'Retry or cancel the runs that match a filter',
    description:
      'Each run as `/retry` or `/cancel` would. What cannot be retried (open or succeeded runs, runs of deleted schedules) ' +
      'or cancelled (ended runs) does not match.',
    ...{ tags: [TAGS.runs], body: bulkInput },
    answers: { 200: json('What became of them', bulkAnswer('runs', ', counted up to 100,000')) },
    handler: ({ body: { filter, ...request }, caller }) => {
      const { label: labels, status: statuses, trigger: triggers, ...rest } = filter;
      return actOnMatchingRuns(audited(deps, { caller }), {
        ...request,
        filter: { ...rest, labels, statuses, triggers },
      });
    },
  });
}
