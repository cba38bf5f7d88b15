import { z } from 'zod';
import { listAudit } from '../../store/audit/audit-rows.ts';
import type { Api, ApiDeps } from '../deps.ts';
import { auditCursor, limitQuery, pageOf, pageSchema } from '../http/pages.ts';
import { emptyPeriod } from '../http/request-checks.ts';
import { addRoute, answersOf, json, TAGS } from '../http/routes.ts';
import { ROLES } from '../../core/access/roles.ts';
import { AUDIT_ACTIONS } from '../../core/audit.ts';
import { answeredInstant, scheduleIdText, text, queryInstant } from '../http/common-schemas.ts';
import { wordList } from '../http/filter-schemas.ts';

const auditQuery = z.strictObject({
  by: text(128).optional().describe('The name of a token, or of a user that a proxy names.'),
  action: wordList(AUDIT_ACTIONS).optional(),
  scheduleId: scheduleIdText.optional(),
  from: queryInstant.optional(),
  to: queryInstant.optional(),
  limit: limitQuery,
  cursor: auditCursor.optional(),
});

export const auditEntry = z
  .object({
    at: answeredInstant,
    by: z.string().nullable().describe('Null: this firelock did not ask callers who they are.'),
    role: z.enum(ROLES),
    action: z
      .enum(AUDIT_ACTIONS)
      .nullable()
      .describe('Null: a call was refused that only reads, or several calls were.'),
    subject: z.string().nullable().meta({
      description: 'The id of the schedule, run, calendar or limit; null: it is about none, or many.',
    }),
    scheduleId: z.string().nullable().describe('The schedule, also where the subject is a run of it.'),
    outcome: z.enum(['done', 'refused']),
    detail: z.record(z.string(), z.unknown()).meta({
      description:
        'The change: paths of fields, versions, counts; of `/runs/bulk` the filter and the runs. Never a payload or a secret.',
    }),
  })
  .meta({ id: 'AuditEntry' });

const auditPage = pageSchema(auditEntry);
const answered = answersOf(auditEntry);

export function addAuditRoute(api: Api, { database }: ApiDeps): void {
  addRoute(api, {
    route: 'GET /audit',
    operationId: 'listAudit',
    config: { role: 'operator', scope: 'itself', pace: 'slow', alsoCheck: emptyPeriod },
    summary: 'What callers changed, and what they were refused; newest first',
    description:
      '`from` and `to` mean `at`. A call that changes nothing has no entry. What firelock does by itself is in `/versions`. A caller with a scope reads what is about names that it sees; of calls about many things, and of refused ones, those of callers whose scope is within its own.',
    tags: [TAGS.instances],
    querystring: auditQuery,
    answers: { 200: json('A page of entries', auditPage) },
    handler: async ({
      query: { by, action: actions, scheduleId, from, to, limit, cursor: after },
      caller: { scope },
    }) => {
      const filter = { scope, by, actions, scheduleId, from, to, after, limit: limit + 1 };
      const rows = await database.run((db) => listAudit(db, filter));
      return pageOf({ rows, limit }, answered, ({ at, id }) => ({ at, id }));
    },
  });
}
