import { type SQL, sql } from 'drizzle-orm';
import type { Role } from '../../core/access/roles.ts';
import type { Scope } from '../../core/access/scope.ts';
import { ACTIONS_ON_NAMES, type AuditAction, type AuditDetail, type AuditOutcome } from '../../core/audit.ts';
import { type Instant, isoInstant } from '../../core/instant.ts';
import type { Executor } from '../../postgres/executor.ts';
import { texts } from '../../postgres/sql/arrays.ts';
import { recordsOf } from '../../postgres/sql/rows.ts';
import { namesOwned, namesSeen } from '../scopes/in-scope.ts';

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
  const among =
    actions.length === 1 ? sql`action = ${actions[0]}` : sql`action = ANY (${texts([...actions])})`;
  return actions.includes('run.complete') ? among : sql`action <> 'run.complete' AND ${among}`;
}
