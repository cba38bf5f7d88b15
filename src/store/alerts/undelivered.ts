import { sql } from 'drizzle-orm';
import type { MessageEvent } from '../../core/alerts/message.ts';
import type { Notifier } from '../../core/alerts/notifier.ts';
import { uuids } from '../../postgres/sql/arrays.ts';
import { databaseNow } from '../../postgres/sql/database-now.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { rowsOf } from '../../postgres/sql/rows.ts';
import type { Effect } from '../effects/effect-rows.ts';
import { lockNotifiersToTell } from './notifiers-to-tell.ts';
import { NO_MESSAGES, type RecordedMessages, type Telling, recordMessages } from './record-messages.ts';

interface Row {
  run_id: string;
  notifier_id: string;
  event: MessageEvent;
  fallback: string;
}

interface PassedOn {
  /** Another transaction has the notifier's row. */
  unfinished: readonly Effect[];
  /** More is to be told than one transaction tells, and how far these are done. */
  begun: readonly Effect[];
  messages: RecordedMessages;
}

/** Messages that one transaction records for fallbacks that get one for each episode. */
const MOST_MESSAGES = 500;
const FIRST_ID = '00000000-0000-0000-0000-000000000000';

/**
 * Records for each of these messages, which did not succeed, one for the fallback of its notifier, if there is one; for PagerDuty, one for
 * each of its episodes. What a fallback could not deliver goes nowhere else.
 */
export async function passOnUndelivered(
  tx: Transaction,
  effects: readonly Effect[],
  publicUrl: string | null,
): Promise<PassedOn> {
  if (effects.length === 0) return { unfinished: [], begun: [], messages: NO_MESSAGES };
  const rows = await rowsOf<Row>(tx)(sql`-- passOnUndelivered
    SELECT m.run_id, m.notifier_id, m.event, n.fallback FROM messages m JOIN notifiers n ON n.id = m.notifier_id
    WHERE m.run_id = ANY (${uuids(effects.map(({ runId }) => runId))}) AND m.fallback_for IS NULL AND m.event <> 'test'
      AND n.fallback IS NOT NULL`);
  const { free, locked } = await lockNotifiersToTell(
    tx,
    rows.map(({ fallback }) => fallback),
  );
  const waiting = new Set(rows.filter(({ fallback }) => locked.has(fallback)).map(({ run_id }) => run_id));
  const told = rows.flatMap((row) => {
    const notifier = free.get(row.fallback);
    const effect = effects.find(({ runId }) => runId === row.run_id);
    return notifier && effect ? [{ row, notifier, effect }] : [];
  });
  const { tellings, begun } = await tellingsOf(tx, told);
  const now = await databaseNow(tx);
  return {
    unfinished: effects.filter(({ runId }) => waiting.has(runId)),
    begun,
    messages: await recordMessages(tx, tellings, { now, publicUrl }),
  };
}

interface Passing {
  row: Row;
  notifier: Notifier;
  effect: Effect;
}

async function tellingsOf(
  tx: Transaction,
  told: readonly Passing[],
): Promise<{ tellings: Telling[]; begun: Effect[] }> {
  const apart = told.filter(({ notifier }) => notifier.channel === 'pagerduty');
  const share = Math.ceil(MOST_MESSAGES / Math.max(1, apart.length));
  const alerts = await nextAlerts(
    tx,
    apart.map(({ effect }) => effect),
    share,
  );
  const tellings = told.map(({ row, notifier }): Telling => {
    const telling = { notifier, event: row.event, fallbackFor: row.notifier_id };
    if (notifier.channel === 'pagerduty') return { ...telling, alertIds: alerts.get(row.run_id) ?? [] };
    return { ...telling, alertIds: [], copiedFrom: row.run_id };
  });
  const begun = apart.flatMap(({ effect }) => {
    const of = alerts.get(effect.runId) ?? [];
    return of.length < share ? [] : [{ ...effect, doneThrough: of.at(-1) ?? null }];
  });
  return { tellings, begun };
}

/** By the run of the message: its next episodes, behind those that were told already. */
async function nextAlerts(
  tx: Transaction,
  effects: readonly Effect[],
  share: number,
): Promise<Map<string, string[]>> {
  if (effects.length === 0) return new Map();
  const rows = await rowsOf<{ run_id: string; alert_id: string }>(tx)(sql`-- nextAlerts
    SELECT e.run_id, a.alert_id
    FROM unnest(${uuids(effects.map(({ runId }) => runId))}, ${uuids(effects.map(({ doneThrough }) => doneThrough ?? FIRST_ID))})
      AS e(run_id, done_through)
      CROSS JOIN LATERAL (SELECT alert_id FROM message_alerts WHERE run_id = e.run_id AND alert_id > e.done_through
        ORDER BY alert_id LIMIT ${share}) AS a ORDER BY e.run_id, a.alert_id`);
  const found = Map.groupBy(rows, ({ run_id }) => run_id);
  return new Map([...found].map(([runId, of]) => [runId, of.map(({ alert_id }) => alert_id)]));
}
