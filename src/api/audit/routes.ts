import type { z } from 'zod';
import { isoInstant } from '../../core/instant.ts';
import { type AuditEntry, listAudit } from '../../store/audit/list-audit.ts';
import type { Api, ApiDeps } from '../deps.ts';
import { pageOf } from '../http/pages.ts';
import { emptyPeriod } from '../http/period.ts';
import { TAGS } from '../http/plugins/openapi.ts';
import { json, problems } from '../http/response-schemas.ts';
import { type auditEntry, auditPage, auditQuery } from './schemas.ts';

export function addAuditRoute(api: Api, { database }: ApiDeps): void {
  api.get(
    '/audit',
    {
      config: { role: 'operator', pace: 'slow', alsoCheck: emptyPeriod },
      schema: {
        operationId: 'listAudit',
        summary: 'What callers changed, and what they were refused; newest first',
        description:
          '`from` and `to` mean `at`. A call that changes nothing has no entry. What firelock does by itself is in `/versions`.',
        tags: [TAGS.instances],
        querystring: auditQuery,
        response: { 200: json('A page of entries', auditPage), ...problems(400) },
      },
    },
    async ({ query: { by, action: actions, scheduleId, from, to, limit, cursor: after } }) => {
      const filter = { by, actions, scheduleId, from, to, after, limit: limit + 1 };
      const rows = await database.run((db) => listAudit(db, filter));
      return pageOf(rows, limit, answerEntry, ({ at, id }) => ({ at, id }));
    },
  );
}

function answerEntry(entry: AuditEntry): z.output<typeof auditEntry> {
  const { at, by, role, action, subject, scheduleId, outcome, detail } = entry;
  return { at: isoInstant(at), by, role, action, subject, scheduleId, outcome, detail };
}
