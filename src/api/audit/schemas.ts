import { z } from 'zod';
import { ROLES } from '../../core/access/roles.ts';
import { AUDIT_ACTIONS } from '../../core/audit.ts';
import { answeredInstant, queryInstant, scheduleIdText, text, wordList } from '../http/common-schemas.ts';
import { auditCursor, limitQuery, pageSchema } from '../http/pages.ts';

export const auditQuery = z.strictObject({
  by: text(128).optional().meta({ description: 'The name of a token, or of a user that a proxy names.' }),
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
    by: z.string().nullable().meta({ description: 'Null: this firelock did not ask callers who they are.' }),
    role: z.enum(ROLES),
    action: z
      .enum(AUDIT_ACTIONS)
      .nullable()
      .meta({ description: 'Null: a call was refused that only reads, or several calls were.' }),
    subject: z.string().nullable().meta({
      description: 'The id of the schedule, run, calendar or limit; null: it is about none, or many.',
    }),
    scheduleId: z
      .string()
      .nullable()
      .meta({ description: 'The schedule, also where the subject is a run of it.' }),
    outcome: z.enum(['done', 'refused']),
    detail: z.record(z.string(), z.unknown()).meta({
      description:
        'The change: paths of fields, versions, counts; of `/runs/bulk` the filter and the runs. Never a payload or a secret.',
    }),
  })
  .meta({ id: 'AuditEntry' });

export const auditPage = pageSchema(auditEntry);
