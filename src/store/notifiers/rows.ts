import { type SQL, sql } from 'drizzle-orm';
import type { AlertKind } from '../../core/alerts/alert.ts';
import type { Notifier, NotifierFilter } from '../../core/alerts/notifier.ts';
import type { ChannelType } from '../../core/alerts/texts/channels.ts';
import { texts } from '../../postgres/sql/arrays.ts';
import type { Executor, Transaction } from '../../postgres/executor.ts';
import { type InstantText, rowsOf, toInstant } from '../../postgres/sql/rows.ts';

/** All that are enabled, by their ids. */
export async function readNotifiers(tx: Executor): Promise<Notifier[]> {
  const rows = await rowsOf<NotifierRow>(tx)(sql`-- readNotifiers
    SELECT ${NOTIFIER_COLUMNS} FROM notifiers n WHERE enabled ORDER BY id`);
  return rows.map(toNotifier);
}

/**
 * Those of these notifiers that exist, their rows locked until the transaction ends, in the order of their ids. A row that was waited
 * for is read as it is once it is locked. `skipLocked`: without those that others have locked.
 */
export async function lockNotifiers(
  tx: Transaction,
  ids: readonly string[],
  skipLocked: boolean,
): Promise<Notifier[]> {
  if (ids.length === 0) return [];
  const rows = await rowsOf<NotifierRow>(tx)(sql`-- lockNotifiers
    SELECT ${NOTIFIER_COLUMNS} FROM notifiers n WHERE id = ANY (${texts([...new Set(ids)])})
    ORDER BY id FOR NO KEY UPDATE${skipLocked ? sql` SKIP LOCKED` : sql``}`);
  return rows.map(toNotifier);
}

export interface NotifierRow {
  id: string;
  uid: string;
  description: string | null;
  enabled: boolean;
  kinds: string;
  filter: NotifierFilter;
  channel: ChannelType;
  destination: string | null;
  remind_seconds: number | null;
  after_failures: number;
  fallback: string | null;
  version: number;
  updated_at: InstantText;
}

export const NOTIFIER_COLUMNS: SQL = sql`n.id, n.uid, n.description, n.enabled, array_to_json(n.kinds)::text AS kinds, n.filter, n.channel,
  n.remind_seconds, n.after_failures, n.fallback, n.version, n.updated_at, CASE WHEN n.channel = 'email' THEN 'mail' ELSE (
    SELECT left(lower(substring(coalesce(c.url, sent.target->>'url') FROM '^[a-zA-Z]+://([^/?#]*)')), 300)
    FROM (SELECT v.definition->'target' AS target FROM schedule_versions v
      WHERE v.schedule_uid = n.uid AND v.version = n.version) AS sent
      LEFT JOIN connections c ON c.id = sent.target->>'connection') END AS destination`;

export function toNotifier(row: NotifierRow): Notifier {
  const { uid, id, description, enabled, filter, channel, fallback, version } = row;
  return {
    uid,
    id,
    description,
    enabled,
    on: JSON.parse(row.kinds) as AlertKind[],
    filter,
    channel,
    destination: row.destination ?? '',
    remindSeconds: row.remind_seconds,
    afterFailures: row.after_failures,
    fallback,
    version,
    updatedAt: toInstant(row.updated_at),
  };
}
