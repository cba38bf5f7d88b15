import { sql } from 'drizzle-orm';
import type { Caller } from '../../core/access/roles.ts';
import type { Scope } from '../../core/access/scope.ts';
import {
  ACTIONS_ON_NAMES,
  type AuditAction,
  type AuditDetail,
  type AuditedChange,
} from '../../core/audit.ts';
import type { Instant } from '../../core/instant.ts';
import { type InstantText, databaseNow, rowsOf, toInstant } from '../../postgres/sql/rows.ts';
import { texts } from '../../postgres/sql/arrays.ts';
import type { Executor, Transaction } from '../../postgres/executor.ts';

/**
 * Writes a caller's changes into the audit, in the transaction of the change: no change without its entry, and no entry
 * without its change. An operation without an auditor was not asked for by a caller: firelock, or a command, does it.
 */
export interface Auditor {
  /** One change; answers the database's time, which is that of the entry. */
  note(tx: Transaction, change: AuditedChange): Promise<Instant>;
  /**
   * The changes so far of a call that takes several transactions: one entry, which each of them updates. `entry` is the
   * answer of the previous transaction, once that is committed.
   */
  noteSoFar(tx: Transaction, entry: AuditKey | null, change: AuditedChange): Promise<AuditKey>;
}

/** Finds an entry again. */
export interface AuditKey {
  id: string;
  /** As PostgreSQL wrote it. */
  at: string;
}

export function auditorFor(caller: Caller): Auditor {
  return {
    note: async (tx, change) => toInstant((await insertDone(tx, caller, change)).at),
    noteSoFar: async (tx, entry, change) => {
      if (entry === null) return insertDone(tx, caller, change);
      await tx.execute(sql`-- auditorFor
        UPDATE audit SET detail = ${JSON.stringify(change.detail)}::jsonb
        WHERE at = ${entry.at}::timestamptz AND id = ${entry.id}::uuid`);
      return entry;
    },
  };
}

/** The database's time, together with an entry if there is an auditor: this costs no additional statement. */
export function noteOrNow(
  tx: Transaction,
  auditor: Auditor | undefined,
  change: () => AuditedChange,
): Promise<Instant> {
  return auditor ? auditor.note(tx, change()) : databaseNow(tx);
}

async function insertDone(tx: Transaction, caller: Caller, change: AuditedChange): Promise<AuditKey> {
  const { action, subject, scheduleId, detail } = change;
  const { name, scope } = placeOfChange(caller, change);
  const prefixes = scope === null ? sql`NULL` : texts(scope);
  const [row] = await rowsOf<{ id: string; at: InstantText }>(tx)(sql`-- insertDone
    INSERT INTO audit (at, by, role, action, subject, schedule_id, outcome, detail, name, scope)
    VALUES (date_trunc('milliseconds', clock_timestamp()), ${caller.name}, ${caller.role}, ${action}, ${subject}, ${scheduleId}, 'done',
      ${JSON.stringify(detail)}::jsonb, ${name}, ${prefixes})
    RETURNING id, at`);
  if (!row) throw new Error('an entry of the audit was not written');
  return row;
}

/** By what scopes find an entry; nothing where its schedule or its subject says it. */
interface Place {
  name: string | null;
  scope: Scope;
}

function placeOfChange({ scope }: Caller, { action, scheduleId, runName = null }: AuditedChange): Place {
  const isPlaced = scheduleId !== null || runName !== null || ACTIONS_ON_NAMES.includes(action);
  return isPlaced ? { name: runName, scope: null } : placeOfScope(scope, null);
}

/** What has no name, or was refused, is for those whose scope has all of the caller's. */
function placeOfScope(scope: Scope, name: string | null): Place {
  return scope === null ? { name, scope } : { name: scope[0] ?? null, scope };
}

/** A call that a caller's role or scope does not allow. */
export interface RefusedCall {
  caller: Caller;
  /** Null: the call only reads. */
  action: AuditAction | null;
  subject: string | null;
  scheduleId: string | null;
  /** The calendar, limit, connection, notifier or queue that the path names. */
  name: string | null;
  detail: AuditDetail;
}

/** All in one statement, outside of any other transaction: nothing was changed. */
export async function recordRefusals(db: Executor, calls: readonly RefusedCall[]): Promise<void> {
  if (calls.length === 0) return;
  const rows = calls.map(({ caller, action, subject, scheduleId, name, detail }) => ({
    ...{ by: caller.name, role: caller.role, action, subject, schedule_id: scheduleId, detail },
    ...placeOfScope(caller.scope, name),
  }));
  await db.execute(sql`-- recordRefusals
    INSERT INTO audit (at, by, role, action, subject, schedule_id, outcome, detail, name, scope)
    SELECT clock_timestamp(), by, role, action, subject, schedule_id, 'refused', detail, name, scope
    FROM jsonb_populate_recordset(NULL::audit, ${JSON.stringify(rows)}::jsonb)`);
}
