import { sql } from 'drizzle-orm';
import { isoInstant } from '../../core/instant.ts';
import { handoffOf, type Notifier } from '../../core/alerts/notifier.ts';
import { texts } from '../../postgres/sql/arrays.ts';
import { TryAgain } from '../../postgres/errors.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { NO_SCHEDULE, rowsOf } from '../../postgres/sql/rows.ts';
import { deleteNamed } from '../names/find-named.ts';
import type { StoredNotifier } from './find-notifiers.ts';

/** @throws TryAgain if another caller has just created one of that id */
export async function createNotifier(tx: Transaction, notifier: StoredNotifier): Promise<void> {
  const { id, uid, description, enabled, channel, remindSeconds, afterFailures, fallback, version } =
    notifier;
  const rows = await rowsOf(tx)(sql`-- createNotifier
    INSERT INTO notifiers (id, uid, description, enabled, kinds, filter, channel, remind_seconds, after_failures, fallback, version,
      updated_at)
    VALUES (${id}, ${uid}, ${description}, ${enabled}, ${texts(notifier.on)}, ${JSON.stringify(notifier.filter)}::jsonb, ${channel},
      ${remindSeconds}, ${afterFailures}, ${fallback}, ${version}, ${isoInstant(notifier.updatedAt)}::timestamptz)
    ON CONFLICT DO NOTHING RETURNING id`);
  if (rows.length === 0) throw new TryAgain('a notifier of that id was created meanwhile');
  await keepVersion(tx, notifier, 'created');
}

/** The caller has its row locked. */
export async function changeLockedNotifier(tx: Transaction, notifier: StoredNotifier): Promise<void> {
  const { id, description, enabled, channel, remindSeconds, afterFailures, fallback, version } = notifier;
  await tx.execute(sql`-- changeLockedNotifier
    UPDATE notifiers SET description = ${description}, enabled = ${enabled}, kinds = ${texts(notifier.on)},
      filter = ${JSON.stringify(notifier.filter)}::jsonb, channel = ${channel}, remind_seconds = ${remindSeconds},
      after_failures = ${afterFailures}, fallback = ${fallback}, version = ${version}, updated_at = ${isoInstant(notifier.updatedAt)}::timestamptz WHERE id = ${id}`);
  await keepVersion(tx, notifier, 'updated');
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

/** What its messages are handed to, where the runs of this version find it. */
async function keepVersion(
  tx: Transaction,
  { uid, version, target, updatedAt }: StoredNotifier,
  change: 'created' | 'updated',
): Promise<void> {
  await tx.execute(sql`-- keepVersion
    INSERT INTO schedule_versions (schedule_uid, version, schedule_id, change, at, definition, edition)
    VALUES (${uid}, ${version}, ${NO_SCHEDULE}, ${change}, ${isoInstant(updatedAt)}::timestamptz,
      ${JSON.stringify(handoffOf(target))}::jsonb, gen_random_uuid())`);
}
