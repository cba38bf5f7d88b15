import { type SQL, sql } from 'drizzle-orm';
import { handoffOf, isSlackItself, messageRun, type Notifier } from '../../core/alerts/notifier.ts';
import { type Instant, isoInstant } from '../../core/instant.ts';
import type { Executor, Transaction } from '../../postgres/executor.ts';
import { texts } from '../../postgres/sql/arrays.ts';
import { NO_SCHEDULE, onlyColumnOf, recordsOf, rowsOf } from '../../postgres/sql/rows.ts';
import { type HandoffTarget, PRIORITY_RANK } from '../../core/schedules/schedule.ts';
import { rowBytes } from '../../postgres/sql/lists.ts';
import { deleteNamed, type NamedRows } from '../names/named-rows.ts';
import type { Message } from '../../core/alerts/alert.ts';
import { payloadOf } from '../../core/alerts/texts/channels.ts';
import { randomRunId } from '../../core/runs/run.ts';
import { recordRuns } from '../runs/lock-and-save.ts';

/** All that are enabled, by their ids. */
export function readNotifiers(tx: Executor): Promise<Notifier[]> {
  return recordsOf<Notifier>(tx)(sql`-- readNotifiers
    SELECT ${NOTIFIER_COLUMNS} FROM notifiers n WHERE enabled ORDER BY id`);
}

interface NotifiersToTell {
  /** Those that are enabled, by id. */
  free: ReadonlyMap<string, Notifier>;
  /** Other transactions have these. */
  locked: ReadonlySet<string>;
}

/**
 * Locks the rows of these notifiers, in the order of their ids. Under this lock it is decided which message tells of an episode, and when a
 * message is closed. One that is gone or disabled is in neither answer.
 */
export async function lockNotifiersToTell(tx: Transaction, ids: readonly string[]): Promise<NotifiersToTell> {
  if (ids.length === 0) return { free: new Map(), locked: new Set() };
  const found = await recordsOf<Notifier>(tx)(sql`-- lockNotifiersToTell
    SELECT ${NOTIFIER_COLUMNS} FROM notifiers n WHERE id = ANY (${texts([...new Set(ids)])})
    ORDER BY id FOR NO KEY UPDATE SKIP LOCKED`);
  const mine = new Set(found.map(({ id }) => id));
  const others = [...new Set(ids)].filter((id) => !mine.has(id));
  const there =
    others.length === 0
      ? []
      : await onlyColumnOf<string>(tx)(sql`-- lockNotifiersToTell
    SELECT id FROM notifiers WHERE id = ANY (${texts(others)}) AND enabled`);
  return {
    free: new Map(found.filter(({ enabled }) => enabled).map((one) => [one.id, one])),
    locked: new Set(there),
  };
}

const NOTIFIER_COLUMNS: SQL = sql`n.id, n.uid, n.description, n.enabled, to_jsonb(n.kinds) AS "on", n.filter, n.channel,
  n.remind_seconds, n.after_failures, n.fallback, n.version, n.updated_at, coalesce(CASE WHEN n.channel = 'email' THEN 'mail' ELSE (
    SELECT left(lower(substring(coalesce(c.url, sent.target->>'url') FROM '^[a-zA-Z]+://([^/?#]*)')), 300)
    FROM (SELECT v.definition->'target' AS target FROM schedule_versions v
      WHERE v.schedule_uid = n.uid AND v.version = n.version) AS sent
      LEFT JOIN connections c ON c.id = sent.target->>'connection') END, '') AS destination`;

/** A notifier, and what the messages of its version are handed to. */
export interface StoredNotifier extends Notifier {
  target: HandoffTarget;
}

export const NOTIFIER_ROWS: NamedRows<StoredNotifier> = {
  table: 'notifiers',
  whole: (page) => sql`SELECT ${NOTIFIER_COLUMNS}, v.definition -> 'target' AS target,
      ${rowBytes({ documents: [sql`v.definition`] })} AS row_bytes
    FROM (${page}) AS n JOIN schedule_versions v ON v.schedule_uid = n.uid AND v.version = n.version`,
  columnsOf: ({ uid, description, enabled, on, filter, channel, ...told }) => ({
    ...{ uid, description, enabled, kinds: texts(on), filter: JSON.stringify(filter), channel },
    ...{ remind_seconds: told.remindSeconds, after_failures: told.afterFailures, fallback: told.fallback },
  }),
};

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

/**
 * The caller has its row locked, and ends its open messages. What it was told of is forgotten; what it was told stays with its runs,
 * until history drops them.
 */
export async function deleteLockedNotifier(tx: Transaction, { id }: Pick<Notifier, 'id'>): Promise<void> {
  await tx.execute(sql`-- deleteLockedNotifier
    DELETE FROM alert_tellings WHERE notifier_id = ${id}`);
  await tx.execute(sql`-- deleteLockedNotifier
    WITH gathering AS (DELETE FROM messages WHERE notifier_id = ${id} AND gathers_until IS NOT NULL RETURNING run_id)
    DELETE FROM message_alerts a USING gathering g WHERE a.run_id = g.run_id`);
  await deleteNamed(tx, 'notifiers', id);
}

/** What the messages of this version are handed to, where their runs find it. */
export async function keepNotifierVersion(
  tx: Transaction,
  { uid, version, target, updatedAt }: StoredNotifier,
  change: 'created' | 'updated',
): Promise<void> {
  await tx.execute(sql`-- keepNotifierVersion
    INSERT INTO schedule_versions (schedule_uid, version, schedule_id, change, at, definition, edition)
    VALUES (${uid}, ${version}, ${NO_SCHEDULE}, ${change}, ${isoInstant(updatedAt)}::timestamptz,
      ${JSON.stringify(handoffOf(target))}::jsonb, gen_random_uuid())`);
}

const MOST_A_MINUTE = 10;

/** How long until another test of this notifier may be sent, over all instances; 0: it may be sent now. */
export async function waitForTestMs(tx: Transaction, notifierId: string, now: Instant): Promise<number> {
  const [tenth] = await tx.execute<{ ago: number }>(sql`-- waitForTestMs
    SELECT extract(epoch FROM ${isoInstant(now)}::timestamptz - created_at)::float8 * 1000 AS ago
    FROM messages
    WHERE created_at > ${isoInstant(now)}::timestamptz - interval '1 minute'
      AND notifier_id = ${notifierId} AND event = 'test'
    ORDER BY created_at DESC OFFSET ${MOST_A_MINUTE - 1} LIMIT 1`);
  return tenth === undefined ? 0 : Math.max(1, 60_000 - tenth.ago);
}

/** Records a message of the event `test`, which gathers nothing and may be sent at once. Answers the id of its run. */
export async function recordTestMessage(tx: Transaction, notifier: Notifier, now: Instant): Promise<string> {
  const id = randomRunId(now);
  const about = { alerts: [], more: 0, fallbackFor: null };
  const message: Message = { notifier: notifier.id, event: 'test', at: now, ...about };
  const run = { id, status: 'pending', dueAt: now, priority: PRIORITY_RANK.normal } as const;
  const ownPayload = payloadOf(notifier.channel, message, isSlackItself(notifier));
  await recordRuns(tx, [messageRun(notifier, { ...run, ownPayload }, now)]);
  await tx.execute(sql`-- recordTestMessage
    INSERT INTO messages (run_id, notifier_id, event, gathers_until, created_at)
    VALUES (${id}, ${notifier.id}, 'test', NULL, ${isoInstant(now)}::timestamptz)`);
  return id;
}
