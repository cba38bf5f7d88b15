import { sql } from 'drizzle-orm';
import type { Caller } from '../../core/access/roles.ts';
import type { AuditAction, AuditDetail, AuditedChange } from '../../core/audit.ts';
import type { Instant } from '../../core/instant.ts';
import { databaseNow } from '../../postgres/sql/database-now.ts';
import type { Executor, Transaction } from '../../postgres/executor.ts';
import { type InstantText, rowsOf, toInstant } from '../../postgres/sql/rows.ts';

/**
 * Writes what a caller changes, in the transaction of the change: there is no change without its entry, and no entry without its change.
 * An operation without one is not asked for by a caller: firelock does it by itself, or a command does.
 */
export interface Auditor {
  /** One change; answers the database's time, which is that of the entry. */
  note(tx: Transaction, change: AuditedChange): Promise<Instant>;
  /**
   * What a call has changed so far that takes several transactions: one entry, which each of them brings up to date. `entry` is what the
   * transaction before answered, once that is committed.
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
      await tx.execute(
        sql`UPDATE audit SET detail = ${JSON.stringify(change.detail)}::jsonb
        WHERE at = ${entry.at}::timestamptz AND id = ${entry.id}::uuid`,
      );
      return entry;
    },
  };
}

/** The database's time, beside an entry where there is an auditor: it costs no statement more. */
export function noteOrNow(
  tx: Transaction,
  auditor: Auditor | undefined,
  change: () => AuditedChange,
): Promise<Instant> {
  return auditor ? auditor.note(tx, change()) : databaseNow(tx);
}

async function insertDone(
  tx: Transaction,
  { name, role }: Caller,
  { action, subject, scheduleId, detail }: AuditedChange,
): Promise<AuditKey> {
  const [row] = await rowsOf<{ id: string; at: InstantText }>(
    tx,
    sql`INSERT INTO audit (at, by, role, action, subject, schedule_id, outcome, detail)
    VALUES (date_trunc('milliseconds', clock_timestamp()), ${name}, ${role}, ${action}, ${subject}, ${scheduleId}, 'done', ${JSON.stringify(detail)}::jsonb)
    RETURNING id, at`,
  );
  if (!row) throw new Error('an entry of the audit was not written');
  return row;
}

/** A call that a caller's role does not allow. */
export interface RefusedCall {
  caller: Caller;
  /** Null: the call only reads. */
  action: AuditAction | null;
  subject: string | null;
  scheduleId: string | null;
  detail: AuditDetail;
}

/** All in one statement, and in no transaction of anything else: nothing was changed. */
export async function recordRefusals(db: Executor, calls: readonly RefusedCall[]): Promise<void> {
  if (calls.length === 0) return;
  const rows = calls.map(({ caller: { name, role }, action, subject, scheduleId, detail }) => ({
    ...{ by: name, role, action, subject, schedule_id: scheduleId, detail },
  }));
  await db.execute(
    sql`INSERT INTO audit (at, by, role, action, subject, schedule_id, outcome, detail)
    SELECT clock_timestamp(), by, role, action, subject, schedule_id, 'refused', detail
    FROM jsonb_populate_recordset(NULL::audit, ${JSON.stringify(rows)}::jsonb)`,
  );
}
