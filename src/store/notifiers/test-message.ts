import { sql } from 'drizzle-orm';
import { type Instant, isoInstant } from '../../core/instant.ts';
import type { Message } from '../../core/alerts/message.ts';
import { type Notifier, messageRun, isSlackItself } from '../../core/alerts/notifier.ts';
import { payloadOf } from '../../core/alerts/texts/channels.ts';
import { randomRunId } from '../../core/runs/run.ts';
import { PRIORITY_RANK } from '../../core/schedules/schedule.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { recordRuns } from '../runs/save-runs.ts';

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
