import { z } from 'zod';
import { SCHEDULE_STATUSES } from '../../core/schedules/schedule.ts';
import { setEnabledOfMatching } from '../../operations/bulk-schedules.ts';
import type { Api, ApiDeps } from '../deps.ts';
import { bulkAnswer, dryRunInput } from '../http/bulk-schemas.ts';
import { text } from '../http/common-schemas.ts';
import { filterLabels, filterWords, namesSomething } from '../http/filter-schemas.ts';
import { TAGS } from '../http/plugins/openapi.ts';
import { BODY_PROBLEMS, json, problems } from '../http/response-schemas.ts';
import { unsupported } from '../http/unsupported.ts';
import { ALWAYS } from './timing-schemas.ts';

const scheduleFilter = z
  .strictObject({
    label: filterLabels,
    q: text(1000)
      .min(1)
      .optional()
      .meta({ description: 'Part of the id or the description, in any letter case.' }),
    status: filterWords(SCHEDULE_STATUSES),
  })
  .superRefine(namesSomething, ALWAYS)
  .meta({
    id: 'ScheduleFilter',
    description: 'As in `GET /schedules`: all that is named must hold.',
    example: { label: ['team:billing', 'tier:batch'] },
  });

const bulkInput = z
  .strictObject({
    action: z.enum(['pause', 'resume']),
    filter: scheduleFilter,
    reason: text(1000)
      .nullable()
      .default(null)
      .meta({ description: 'Only with `pause`: becomes the `pauseReason` of each.' }),
    until: unsupported(null),
    dryRun: dryRunInput,
  })
  .superRefine(({ action, reason }, context) => {
    if (action === 'resume' && typeof reason === 'string')
      context.addIssue({ code: 'custom', path: ['reason'], message: 'goes only with the action pause' });
  }, ALWAYS);

export function addScheduleBulkRoute(api: Api, deps: ApiDeps): void {
  api.post(
    '/schedules/bulk',
    {
      schema: {
        operationId: 'actOnSchedules',
        summary: 'Pause or resume the schedules that match a filter',
        description:
          'Each schedule as a PATCH of `enabled` would. What is paused already keeps its `pauseReason`; what is enabled ' +
          'already stays as it is.',
        tags: [TAGS.schedules],
        body: bulkInput,
        response: {
          200: json('What became of them', bulkAnswer('schedules', '')),
          ...problems(...BODY_PROBLEMS),
        },
      },
    },
    ({ body: { action, filter, reason, dryRun } }) => {
      const { label: labels, q, status: statuses } = filter;
      return setEnabledOfMatching(deps, {
        action,
        filter: { labels, text: q, statuses },
        reason,
        dryRun,
        by: null,
      });
    },
  );
}
