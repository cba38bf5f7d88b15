import { type SQL, sql } from 'drizzle-orm';
import type { Role } from '../../core/access/roles.ts';
import type { AuditAction, AuditDetail, AuditOutcome } from '../../core/audit.ts';
import { type Instant, isoInstant } from '../../core/instant.ts';
import { texts } from '../../postgres/sql/arrays.ts';
import type { Executor } from '../../postgres/executor.ts';
import { type InstantText, rowsOf, toInstant } from '../../postgres/sql/rows.ts';

export interface AuditEntry {
  id: string;
  at: Instant;
  by: string | null;
  role: Role;
  action: AuditAction | null;
  subject: string | null;
  scheduleId: string | null;
  outcome: AuditOutcome;
  detail: AuditDetail;
}

interface AuditFilter {
  by?: string | undefined;
  actions?: readonly AuditAction[] | undefined;
  scheduleId?: string | undefined;
  /** Inclusive. */
  from?: Instant | undefined;
  /** Exclusive. */
  to?: Instant | undefined;
  /** Only entries that come after this one in the list. */
  after?: { at: Instant; id: string } | undefined;
  limit: number;
}

interface Row {
  id: string;
  at: InstantText;
  by: string | null;
  role: Role;
  action: AuditAction | null;
  subject: string | null;
  schedule_id: string | null;
  outcome: AuditOutcome;
  detail: AuditDetail;
}

/** The newest first. */
export async function listAudit(db: Executor, filter: AuditFilter): Promise<AuditEntry[]> {
  const rows = await rowsOf<Row>(db)(sql`-- listAudit
    SELECT id, at, by, role, action, subject, schedule_id, outcome, detail FROM audit
    WHERE ${sql.join(conditionsOf(filter), sql` AND `)} ORDER BY at DESC, id DESC LIMIT ${filter.limit}`);
  return rows.map(({ schedule_id: scheduleId, at, ...row }) => ({ ...row, scheduleId, at: toInstant(at) }));
}

function conditionsOf({ by, actions, scheduleId, from, to, after }: AuditFilter): SQL[] {
  const at = (instant: Instant) => sql`${isoInstant(instant)}::timestamptz`;
  return [
    sql`true`,
    ...(by === undefined ? [] : [sql`by = ${by}`]),
    ...(actions === undefined ? [] : [actionIn(actions)]),
    ...(scheduleId === undefined ? [] : [sql`schedule_id = ${scheduleId}`]),
    ...(from === undefined ? [] : [sql`at >= ${at(from)}`]),
    ...(to === undefined ? [] : [sql`at < ${at(to)}`]),
    ...(after === undefined ? [] : [sql`(at, id) < (${at(after.at)}, ${after.id}::uuid)`]),
  ];
}

/** Repeats the condition of the index that leaves completions out, unless the filter asks for these. */
function actionIn(actions: readonly AuditAction[]): SQL {
  const among =
    actions.length === 1 ? sql`action = ${actions[0]}` : sql`action = ANY (${texts([...actions])})`;
  return actions.includes('run.complete') ? among : sql`action <> 'run.complete' AND ${among}`;
}
