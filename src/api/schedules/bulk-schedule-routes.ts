import { z } from 'zod';
import { setEnabledOfMatching } from '../../operations/schedules/bulk-schedules.ts';
import { databaseNow } from '../../postgres/sql/rows.ts';
import type { Api, ApiDeps } from '../deps.ts';
import { audited } from '../audit/audited.ts';
import { NOT_GIVEN, where } from '../document/kinds.ts';
import { bulkAnswer, dryRunInput, filterLabels, filterWords, namesSomething } from '../http/bulk-schemas.ts';
import { instant, text, ALWAYS } from '../http/common-schemas.ts';
import { invalid } from '../http/problem.ts';
import { addRoute, json, TAGS } from '../http/routes.ts';
import { scheduleStatus } from '../http/word-schemas.ts';

const scheduleFilter = z
  .strictObject({
    label: filterLabels,
    q: text(1000)
      .min(1)
      .optional()
      .meta({ description: 'Part of the id or the description, in any letter case.' }),
    status: filterWords(scheduleStatus),
    late: z.boolean().optional(),
  })
  .superRefine(namesSomething, ALWAYS)
  .meta({
    id: 'ScheduleFilter',
    description: 'As in `GET /schedules`: all that is named must hold.',
    minProperties: 1,
  });

const bulkInput = z
  .strictObject({
    action: z.enum(['pause', 'resume']),
    filter: scheduleFilter,
    reason: text(1000)
      .nullable()
      .default(null)
      .meta({ description: 'Only with `pause`: becomes the `pauseReason` of each.' }),
    until: instant
      .nullable()
      .default(null)
      .meta({ description: 'Only with `pause`: becomes the `pauseUntil` of each; in the future.' }),
    dryRun: dryRunInput,
  })
  .superRefine(({ action, reason, until }, context) => {
    if (action !== 'resume') return;
    for (const [name, value] of Object.entries<unknown>({ reason, until })) {
      // Undefined if the filter itself has faults.
      if (value === null || value === undefined) continue;
      context.addIssue({ code: 'custom', path: [name], message: 'is allowed only with the action pause' });
    }
  }, ALWAYS)
  .meta(
    where('action', [{ is: 'pause' }, { is: 'resume', properties: { reason: NOT_GIVEN, until: NOT_GIVEN } }]),
  );

export function addScheduleBulkRoute(api: Api, deps: ApiDeps): void {
  addRoute(api, {
    ...{ route: 'POST /schedules/bulk', operationId: 'actOnSchedules' },
    config: { role: 'admin', scope: 'itself', pace: 'slow', audits: ['schedules.bulk'] },
    summary: 'Pause or resume the schedules that match a filter',
    description:
      'Each schedule as a PATCH of `enabled` would. What is paused already keeps its `pauseReason`; what is enabled ' +
      'already stays as it is.',
    ...{ tags: [TAGS.schedules], body: bulkInput },
    ...{ answers: { 200: json('What became of them', bulkAnswer('schedules', '')) }, refusals: [422] },
    handler: async ({ body: { action, filter, reason, until, dryRun }, caller }) => {
      if (until !== null && until <= (await deps.database.run((db) => databaseNow(db))))
        throw invalid([{ path: '/until', message: 'must be in the future' }], 422);
      const { label: labels, q, status: statuses, late } = filter;
      return setEnabledOfMatching(audited(deps, { caller }), {
        action,
        filter: { scope: caller.scope, labels, text: q, statuses, late },
        reason,
        until,
        dryRun,
        by: caller.name,
      });
    },
  });
}
