import { sql } from 'drizzle-orm';
import { type Instant, isoInstant } from '../../core/instant.ts';
import type { Message } from '../../core/alerts/message.ts';
import { laneOfNotifier, type Notifier } from '../../core/alerts/notifier.ts';
import { payloadOf } from '../../core/alerts/texts/payload-of.ts';
import { newRun } from '../../core/runs/new-run.ts';
import { randomRunId } from '../../core/runs/run.ts';
import { PRIORITY_RANK } from '../../core/schedules/schedule.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { NO_SCHEDULE } from '../../postgres/sql/rows.ts';
import { recordRuns } from '../runs/save-runs.ts';

/** Records a message of the event `test`, which gathers nothing and may be sent at once. Answers the id of its run. */
export async function recordTestMessage(
  tx: Transaction,
  { uid, version, id: notifierId, channel }: Notifier,
  now: Instant,
): Promise<string> {
  const id = randomRunId(now);
  const about = { alerts: [], more: 0, fallbackFor: null };
  const message: Message = { notifier: notifierId, event: 'test', at: now, ...about };
  const run = newRun(
    {
      ...{ id, scheduledFor: now, dueAt: now, trigger: 'notify', status: 'pending', notifierId },
      ...{ scheduleUid: uid, scheduleVersion: version, scheduleId: NO_SCHEDULE },
      lane: laneOfNotifier(notifierId),
      priority: PRIORITY_RANK.normal,
      ownPayload: payloadOf(channel, message),
    },
    now,
  );
  await recordRuns(tx, [run]);
  await tx.execute(sql`-- recordTestMessage
    INSERT INTO messages (run_id, notifier_id, event, gathers_until, created_at)
    VALUES (${id}, ${notifierId}, 'test', NULL, ${isoInstant(now)}::timestamptz)`);
  return id;
}
