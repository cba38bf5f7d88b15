import { type SQL, sql } from 'drizzle-orm';
import type { Scope } from '../../core/access/scope.ts';
import type { Notifier } from '../../core/alerts/notifier.ts';
import type { HandoffTarget } from '../../core/schedules/schedule.ts';
import { type PageRoom, type Sized, readInRoom, rowBytes, withinRoom } from '../../postgres/sql/page-room.ts';
import { containing } from '../../postgres/sql/containing.ts';
import type { Executor, Transaction } from '../../postgres/executor.ts';
import { rowsOf } from '../../postgres/sql/rows.ts';
import { readRangeByRange } from '../scopes/range-by-range.ts';
import { NOTIFIER_COLUMNS, type NotifierRow, toNotifier } from './notifier-rows.ts';

/** A notifier, and what the messages of its version are handed to. */
export interface StoredNotifier extends Notifier {
  target: HandoffTarget;
}

interface NotifierFilterText {
  scope: Scope;
  /** Part of the id or the description, in any letter case. */
  text?: string | undefined;
  /** Only ids after this one. */
  after?: string | undefined;
  limit: number;
  /** Where its bytes end, the list ends. */
  room?: PageRoom;
}

export async function findNotifier(db: Executor, id: string): Promise<StoredNotifier | null> {
  return (await storedWhere(db, sql`n.id = ${id}`))[0] ?? null;
}

/** Ordered by id. */
export async function listNotifiers(db: Executor, filter: NotifierFilterText): Promise<StoredNotifier[]> {
  const { text, after, room } = filter;
  const conditions: SQL[] = [sql`true`];
  if (after !== undefined) conditions.push(sql`n.id > ${after}`);
  if (text !== undefined)
    conditions.push(sql`(${containing(sql`n.id`, text)} OR ${containing(sql`n.description`, text)})`);
  return readRangeByRange(filter, sql`n.id`, (inRange, limit) =>
    storedWhere(db, sql.join([...conditions, ...inRange], sql` AND `), { limit, room }),
  );
}

/** Locks its row until the transaction ends. `toDelete`: no other notifier can name it anew either (`keepNamed`). */
export async function lockNotifier(
  tx: Transaction,
  id: string,
  { toDelete }: { toDelete: boolean },
): Promise<StoredNotifier | null> {
  await tx.execute(sql`-- lockNotifier
    SELECT FROM notifiers WHERE id = ${id} ${toDelete ? sql`FOR UPDATE` : sql`FOR NO KEY UPDATE`}`);
  // A second statement: the first one's snapshot is older than its lock.
  return findNotifier(tx, id);
}

/** From now on until this transaction ends, no other one changes which notifiers name which: a circle may be ruled out. */
export async function lockFallbacks(tx: Transaction): Promise<void> {
  await tx.execute(sql`-- lockFallbacks
    SELECT pg_advisory_xact_lock(hashtext('firelock notifiers ' || current_schema()))`);
}

/** By the id of each notifier that has one, its fallback. */
export async function readFallbacks(tx: Transaction): Promise<Map<string, string>> {
  const rows = await rowsOf<{ id: string; fallback: string }>(tx)(sql`-- readFallbacks
    SELECT id, fallback FROM notifiers WHERE fallback IS NOT NULL`);
  return new Map(rows.map(({ id, fallback }) => [id, fallback]));
}

async function storedWhere(
  db: Executor,
  condition: SQL,
  { limit, room }: { limit: number; room?: PageRoom | undefined } = { limit: 1 },
): Promise<StoredNotifier[]> {
  const page = sql`SELECT ${NOTIFIER_COLUMNS}, v.definition -> 'target' AS target,
      ${rowBytes({ documents: [sql`v.definition`] })} AS row_bytes
    FROM notifiers n JOIN schedule_versions v ON v.schedule_uid = n.uid AND v.version = n.version
    WHERE ${condition} ORDER BY n.id LIMIT ${limit}`;
  const read = () =>
    rowsOf<NotifierRow & Sized & { target: HandoffTarget }>(db)(sql`-- storedWhere
    ${withinRoom(page, sql`p.id`, room)}`);
  const rows = await readInRoom(room, read, ({ row_bytes }) => row_bytes);
  return rows.map((row) => ({ ...toNotifier(row), target: row.target }));
}
