import { type SQL, sql } from 'drizzle-orm';
import type { Caller, Role } from '../../core/access/roles.ts';
import type { Scope } from '../../core/access/scope.ts';
import {
  type AuditAction,
  type AuditDetail,
  type AuditedChange,
  type AuditOutcome,
  ACTIONS_ON_NAMES,
} from '../../core/audit.ts';
import { type Instant, isoInstant } from '../../core/instant.ts';
import { type InstantText, databaseNow, recordsOf, rowsOf, toInstant } from '../../postgres/sql/rows.ts';
import { texts } from '../../postgres/sql/arrays.ts';
import type { Executor, Transaction } from '../../postgres/executor.ts';
import { namesOwned, namesSeen } from '../scopes/in-scope.ts';

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

interface AuditEntry {
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
  scope: Scope;
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

/** So many entries, the newest, are looked at for those that the caller may read. */
const WALKED = 10_000;

/** The newest first. */
export async function listAudit(db: Executor, filter: AuditFilter): Promise<AuditEntry[]> {
  const { scope, scheduleId, limit } = filter;
  const asked = conditionsOf(filter);
  const read = (from: SQL, conditions: readonly SQL[]) => entriesIn(db, { from, conditions, limit });
  if (scope === null) return read(sql`audit`, asked);
  const readable = readableIn(scope);
  const any = sql`(${sql.join(readable, sql` OR `)})`;
  // The one schedule is in the scope or not: there is little between its entries.
  if (scheduleId !== undefined) return read(sql`audit`, [...asked, any]);
  const found = await read(
    sql`(SELECT * FROM audit WHERE ${all(asked)} ORDER BY at DESC, id DESC LIMIT ${WALKED}) AS newest`,
    [any],
  );
  if (found.length === limit) return found;
  // It is a small scope, or an old page: all that it may read is looked up by its names.
  const each = readable.map((one) => sql`SELECT at, id FROM audit WHERE ${all([...asked, one])}`);
  const own = sql`WITH own AS MATERIALIZED (${sql.join(each, sql` UNION `)}) SELECT at, id FROM own ORDER BY at DESC, id DESC LIMIT ${limit}`;
  return read(sql`(${own}) AS own JOIN audit USING (at, id)`, [sql`true`]);
}

interface Reading {
  from: SQL;
  conditions: readonly SQL[];
  limit: number;
}

function entriesIn(db: Executor, { from, conditions, limit }: Reading): Promise<AuditEntry[]> {
  return recordsOf<AuditEntry>(db)(sql`-- entriesIn
    SELECT id, at, by, role, action, subject, schedule_id, outcome, detail FROM ${from}
    WHERE ${all(conditions)} ORDER BY at DESC, id DESC LIMIT ${limit}`);
}

/**
 * What a caller with a scope may read, in parts that have an index each: changes of what it sees, and what was refused of what is its
 * own; what has no name, and other refused calls, of callers whose scope is within its own.
 */
function readableIn(scope: readonly string[]): SQL[] {
  const isReadable = (column: SQL) =>
    sql`(${sql.join([sql`outcome = 'done'`, ...namesSeen(column, scope)], sql` AND `)} OR ${all(namesOwned(column, scope))})`;
  const isOwned = all(namesOwned(sql`p.prefix COLLATE "C"`, scope));
  return [
    isReadable(sql`schedule_id`),
    sql`${actionIn(ACTIONS_ON_NAMES)} AND ${isReadable(sql`subject COLLATE "C"`)}`,
    sql`${all(namesSeen(sql`name`, scope))} AND NOT EXISTS (SELECT FROM unnest(scope) AS p(prefix) WHERE NOT ${isOwned})`,
  ];
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

function all(conditions: readonly SQL[]): SQL {
  return sql.join([...conditions], sql` AND `);
}

/** Repeats the condition of the index that leaves completions out, unless the filter asks for these. */
function actionIn(actions: readonly AuditAction[]): SQL {
  const among = actions.length === 1 ? sql`action = ${actions[0]}` : sql`action = ANY (${texts([...actions])})`;
  return actions.includes('run.complete') ? among : sql`action <> 'run.complete' AND ${among}`;
}
