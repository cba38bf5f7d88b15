import { sql } from 'drizzle-orm';
import type { MessageEvent } from '../../core/alerts/message.ts';
import { uuids } from '../../postgres/sql/arrays.ts';
import { databaseNow } from '../../postgres/sql/database-now.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { rowsOf } from '../../postgres/sql/rows.ts';
import type { Effect } from '../effects/effect-rows.ts';
import { lockNotifiersToTell } from './notifiers-to-tell.ts';
import { recordMessages } from './record-messages.ts';

interface Row {
  run_id: string;
  notifier_id: string;
  event: MessageEvent;
  fallback: string;
  alert_ids: string | null;
}

/**
 * Records for each of these messages, which did not succeed, one for the fallback of its notifier, if there is one. What a fallback could
 * not deliver goes nowhere else. `unfinished`: another transaction has the notifier's row.
 */
export async function passOnUndelivered(
  tx: Transaction,
  effects: readonly Effect[],
): Promise<{ unfinished: readonly Effect[]; messages: number }> {
  if (effects.length === 0) return { unfinished: [], messages: 0 };
  const rows = await rowsOf<Row>(tx)(sql`-- passOnUndelivered
    SELECT m.run_id, m.notifier_id, m.event, n.fallback,
      (SELECT string_agg(alert_id::text, ',' ORDER BY alert_id) FROM message_alerts a WHERE a.run_id = m.run_id) AS alert_ids
    FROM messages m JOIN notifiers n ON n.id = m.notifier_id
    WHERE m.run_id = ANY (${uuids(effects.map(({ runId }) => runId))}) AND m.fallback_for IS NULL AND m.event <> 'test'
      AND n.fallback IS NOT NULL`);
  const { free, locked } = await lockNotifiersToTell(
    tx,
    rows.map(({ fallback }) => fallback),
  );
  const now = await databaseNow(tx);
  const tellings = rows.flatMap((row) => {
    const notifier = free.get(row.fallback);
    if (!notifier) return [];
    const alertIds = row.alert_ids?.split(',') ?? [];
    return [{ notifier, event: row.event, alertIds, fallbackFor: row.notifier_id }];
  });
  const waiting = new Set(rows.filter(({ fallback }) => locked.has(fallback)).map(({ run_id }) => run_id));
  return {
    unfinished: effects.filter(({ runId }) => waiting.has(runId)),
    messages: await recordMessages(tx, tellings, now),
  };
}
