import { z } from 'zod';
import { ALERT_KINDS } from '../../core/alerts/alert.ts';
import { listAlerts } from '../../store/alerts/alert-rows.ts';
import type { Api, ApiDeps } from '../deps.ts';
import { answeredInstant, runStatus, scheduleIdText } from '../http/common-schemas.ts';
import { queryBoolean } from '../http/filter-schemas.ts';
import { alertCursor, limitQuery, pageOf, pageSchema } from '../http/pages.ts';
import { addRoute, answersOf, json, TAGS } from '../http/routes.ts';

const alertsQuery = z.strictObject({
  open: queryBoolean.optional().describe('`true`: only those that are open.'),
  scheduleId: scheduleIdText.optional(),
  limit: limitQuery,
  cursor: alertCursor.optional(),
});

export const answeredAlert = z
  .object({
    id: z.uuid(),
    scheduleId: z.string(),
    kind: z.enum(ALERT_KINDS),
    since: answeredInstant,
    until: answeredInstant.nullable().describe('Null: it is open.'),
    runId: z.uuid().nullable().describe('The run that opened it; null: none did.'),
    status: runStatus.nullable().describe('The status of that run when it opened.'),
    error: z.string().nullable().describe('What was wrong when it opened.'),
  })
  .meta({ id: 'Alert' });

const alertPage = pageSchema(answeredAlert);
const answered = answersOf(answeredAlert);

export function addAlertRoute(api: Api, { database }: ApiDeps): void {
  addRoute(api, {
    route: 'GET /alerts',
    operationId: 'listAlerts',
    config: { role: 'viewer', scope: 'itself' },
    summary: 'Episodes: what is wrong with schedules, and what was; newest first',
    description:
      'An episode is open for each schedule and kind, from what breaks it until what heals it. Episodes that are over are kept as long as history.',
    tags: [TAGS.alerts],
    querystring: alertsQuery,
    answers: { 200: json('A page of episodes', alertPage) },
    handler: async ({ query: { open = false, scheduleId, limit, cursor }, caller: { scope } }) => {
      const filter = { scope, open, scheduleId, after: cursor?.after, limit: limit + 1 };
      const rows = await database.run((db) => listAlerts(db, filter));
      return pageOf({ rows, limit }, answered, ({ id }) => ({ after: id }));
    },
  });
}
