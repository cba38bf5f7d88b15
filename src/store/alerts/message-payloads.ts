import { sql } from 'drizzle-orm';
import { type Alert, type MessageEvent, type ToldAlert, alertUrl, MAX_TOLD } from '../../core/alerts/alert.ts';
import { isSlackItself, type Notifier } from '../../core/alerts/notifier.ts';
import { payloadOf } from '../../core/alerts/texts/channels.ts';
import type { Instant } from '../../core/instant.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { uuids } from '../../postgres/sql/arrays.ts';
import { recordsOf } from '../../postgres/sql/rows.ts';
import { ALERT_COLUMNS } from './alert-rows.ts';

/** What a notifier is to be told, whose row this transaction has locked. */
export interface Telling {
  notifier: Notifier;
  event: MessageEvent;
  alertIds: readonly string[];
  /** The notifier that could not deliver it. */
  fallbackFor?: string;
  /** The message of that notifier whose episodes this one is about instead of `alertIds`. */
  copiedFrom?: string;
  /** Of these, only those that are open; false: only those that are over, and of which it has not heard so. */
  onlyOpen?: boolean;
}

/** A message whose episodes stand in message_alerts. */
export interface GatheredTelling {
  runId: string;
  notifier: Notifier;
  event: MessageEvent;
  fallbackFor: string | null;
}

/** When its text is made, and where the dashboard is; null: messages have no links. */
export interface TextsAt {
  now: Instant;
  publicUrl: string | null;
}

interface Told extends Alert {
  messageId: string;
  labels: Record<string, string> | null;
  count: number;
}

/** What the run of each of these messages carries, by the id of the run; without those that are about nothing any more. */
export async function payloadsOf(
  tx: Transaction,
  messages: readonly GatheredTelling[],
  { now, publicUrl }: TextsAt,
): Promise<Map<string, string>> {
  if (messages.length === 0) return new Map();
  const rows = await recordsOf<Told>(tx)(sql`-- payloadsOf
    SELECT m.run_id AS message_id, told.count, ${ALERT_COLUMNS}, v.definition->'labels' AS labels
    FROM unnest(${uuids(messages.map(({ runId }) => runId))}) AS m(run_id)
      CROSS JOIN LATERAL (SELECT alert_id, (count(*) OVER ())::int AS count FROM message_alerts WHERE run_id = m.run_id
        ORDER BY alert_id LIMIT ${MAX_TOLD}) AS told
      JOIN alerts a ON a.id = told.alert_id LEFT JOIN schedules s ON s.uid = a.schedule_uid
      LEFT JOIN schedule_versions v ON v.schedule_uid = s.uid AND v.version = s.version
    ORDER BY a.id`);
  const told = Map.groupBy(rows, ({ messageId }) => messageId);
  return new Map(
    messages.flatMap(({ runId, notifier, event, fallbackFor }) => {
      const own = told.get(runId) ?? [];
      if (own.length === 0) return [];
      const more = Math.max(0, (own[0]?.count ?? 0) - MAX_TOLD);
      const alerts = own.map((row) => toldAlert(row, publicUrl));
      const message = { notifier: notifier.id, event, at: now, alerts, more, fallbackFor };
      return [[runId, payloadOf(notifier.channel, message, isSlackItself(notifier))] as const];
    }),
  );
}

function toldAlert({ labels, messageId: _of, count: _count, ...alert }: Told, publicUrl: string | null): ToldAlert {
  return { ...alert, labels: labels ?? {}, url: alertUrl(publicUrl, alert) };
}
