import { sql } from 'drizzle-orm';
import { GATHER_SECONDS, type MessageEvent } from '../../core/alerts/message.ts';
import { messageRun } from '../../core/alerts/message-run.ts';
import type { Notifier } from '../../core/alerts/notifier.ts';
import type { Instant } from '../../core/instant.ts';
import { randomRunId } from '../../core/runs/run.ts';
import { PRIORITY_RANK } from '../../core/schedules/schedule.ts';
import { uuids } from '../../postgres/sql/arrays.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { rowsOf } from '../../postgres/sql/rows.ts';
import { recordRuns } from '../runs/save-runs.ts';

/** What a notifier is to be told, whose row this transaction has locked. */
export interface Telling {
  notifier: Notifier;
  event: MessageEvent;
  alertIds: readonly string[];
  /** The notifier that could not deliver it. */
  fallbackFor?: string;
}

/**
 * Adds these episodes to the message of that event that the notifier still gathers, or records a new message, which is a run that waits
 * until it is closed. PagerDuty has one incident for each episode, so each is a message of its own, and nothing is gathered. Answers how
 * many messages it recorded.
 */
export async function recordMessages(
  tx: Transaction,
  tellings: readonly Telling[],
  now: Instant,
): Promise<number> {
  let recorded = 0;
  for (const telling of tellings) {
    const { notifier, event, alertIds, fallbackFor } = telling;
    if (notifier.channel === 'pagerduty') {
      for (const id of alertIds) await recordMessage(tx, { ...telling, alertIds: [id] }, now, now);
      recorded += alertIds.length;
      continue;
    }
    const gathering = fallbackFor === undefined ? await gatheringOf(tx, notifier.id, event) : null;
    if (gathering !== null) await addAlerts(tx, gathering, alertIds);
    else {
      const until = fallbackFor === undefined ? now + GATHER_SECONDS * 1000 : now;
      await recordMessage(tx, telling, now, until);
      recorded += 1;
    }
  }
  return recorded;
}

/** The run of the message that is not closed: it is closed under the same lock. */
async function gatheringOf(tx: Transaction, notifierId: string, event: MessageEvent): Promise<string | null> {
  const [row] = await rowsOf<{ run_id: string }>(tx)(sql`-- gatheringOf
    SELECT run_id FROM messages WHERE gathers_until IS NOT NULL AND fallback_for IS NULL
      AND notifier_id = ${notifierId} AND event = ${event} ORDER BY gathers_until LIMIT 1`);
  return row?.run_id ?? null;
}

async function recordMessage(
  tx: Transaction,
  { notifier, event, alertIds, fallbackFor }: Telling,
  now: Instant,
  gathersUntil: Instant,
): Promise<void> {
  const id = randomRunId(now);
  const run = { id, status: 'waiting', dueAt: gathersUntil, priority: PRIORITY_RANK.high } as const;
  await recordRuns(tx, [messageRun(notifier, run, now)]);
  await tx.execute(sql`-- recordMessage
    INSERT INTO messages (run_id, notifier_id, event, gathers_until, fallback_for, created_at)
    VALUES (${id}, ${notifier.id}, ${event}, ${new Date(gathersUntil).toISOString()}, ${fallbackFor ?? null}, ${new Date(now).toISOString()})`);
  await addAlerts(tx, id, alertIds);
}

async function addAlerts(tx: Transaction, runId: string, alertIds: readonly string[]): Promise<void> {
  await tx.execute(sql`-- addAlerts
    INSERT INTO message_alerts (run_id, alert_id) SELECT ${runId}, unnest(${uuids(alertIds)}) ON CONFLICT DO NOTHING`);
}
