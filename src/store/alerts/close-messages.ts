import { sql } from 'drizzle-orm';
import type { Alert } from '../../core/alerts/alert.ts';
import { MAX_TOLD, type Message, type MessageEvent, type ToldAlert } from '../../core/alerts/message.ts';
import type { ChannelType, Notifier } from '../../core/alerts/notifier.ts';
import type { Instant } from '../../core/instant.ts';
import { endRun, releaseRun } from '../../core/runs/transitions.ts';
import { databaseNow } from '../../postgres/sql/database-now.ts';
import type { Executor, Transaction } from '../../postgres/executor.ts';
import { rowsOf } from '../../postgres/sql/rows.ts';
import { lockOpenRuns } from '../runs/lock-runs.ts';
import { saveLockedRuns } from '../runs/save-runs.ts';
import { ALERT_COLUMNS, type AlertRow, toAlert } from './alert-rows.ts';
import { lockNotifiersToTell } from './notifiers-to-tell.ts';

interface GatheredMessage {
  runId: string;
  notifierId: string;
}

/** Messages that no longer gather, the oldest first; and how long until the next one is such, null: there is none. */
export async function findGathered(
  db: Executor,
  limit: number,
): Promise<{ due: GatheredMessage[]; nextInMs: number | null }> {
  const rows = await rowsOf<{ run_id: string; notifier_id: string; ms: number }>(db)(sql`-- findGathered
    SELECT run_id, notifier_id, extract(epoch FROM gathers_until - clock_timestamp())::float8 * 1000 AS ms FROM messages
    WHERE gathers_until IS NOT NULL ORDER BY gathers_until LIMIT ${limit}`);
  return {
    due: rows.filter(({ ms }) => ms <= 0).map((row) => ({ runId: row.run_id, notifierId: row.notifier_id })),
    nextInMs: rows.find(({ ms }) => ms > 0)?.ms ?? null,
  };
}

/** What makes the text of a message, and its links. */
export interface MessageTexts {
  payloadOf: (channel: ChannelType, message: Message) => string;
  urlOf: (alert: Pick<Alert, 'scheduleId' | 'runId'>) => string | null;
}

/**
 * Closes a message: its run gets its text, the notifier's present version, and goes on. Nothing joins it from then on, so that each
 * attempt sends the same. That of a notifier that is gone or disabled is cancelled. Answers whether the run goes on; null: another
 * transaction has the notifier or the run, and the message is left for the next look.
 */
export async function closeMessage(
  tx: Transaction,
  { runId, notifierId }: GatheredMessage,
  texts: MessageTexts,
): Promise<boolean | null> {
  const { free, locked } = await lockNotifiersToTell(tx, [notifierId]);
  if (locked.has(notifierId)) return null;
  const [row] = await rowsOf<{ event: MessageEvent; fallback_for: string | null }>(tx)(sql`-- closeMessage
    SELECT event, fallback_for FROM messages WHERE run_id = ${runId} AND gathers_until IS NOT NULL FOR UPDATE SKIP LOCKED`);
  if (!row) return false;
  const [run] = await lockOpenRuns(tx, [runId], 'skipLocked');
  if (!run && (await isOpen(tx, runId))) return null;
  const notifier = free.get(notifierId);
  const goesOn = notifier !== undefined && run?.status === 'waiting' && run.scheduleUid === notifier.uid;
  const now = await databaseNow(tx);
  if (goesOn) {
    const message = await messageOf(tx, runId, { notifier, ...row, now }, texts);
    const to = {
      ...releaseRun(run, now),
      dueAt: now,
      scheduleVersion: notifier.version,
      ownPayload: texts.payloadOf(notifier.channel, message),
    };
    await saveLockedRuns(tx, [{ from: run, to }]);
  } else if (run?.status === 'waiting') {
    const to = endRun(run, { status: 'cancelled', reason: 'request' }, now);
    await saveLockedRuns(tx, [{ from: run, to }]);
  }
  await tx.execute(sql`-- closeMessage
    UPDATE messages SET gathers_until = NULL WHERE run_id = ${runId}`);
  return goesOn;
}

async function isOpen(tx: Transaction, runId: string): Promise<boolean> {
  return (
    (
      await rowsOf(tx)(sql`-- isOpen
    SELECT FROM runs WHERE id = ${runId}`)
    ).length > 0
  );
}

interface ToldRow extends AlertRow {
  labels: Record<string, string> | null;
  count: number;
}

async function messageOf(
  tx: Transaction,
  runId: string,
  about: { notifier: Notifier; event: MessageEvent; fallback_for: string | null; now: Instant },
  { urlOf }: MessageTexts,
): Promise<Message> {
  const rows = await rowsOf<ToldRow>(tx)(sql`-- messageOf
    SELECT ${ALERT_COLUMNS}, v.definition->'labels' AS labels, told.count
    FROM (SELECT alert_id, (count(*) OVER ())::int AS count FROM message_alerts WHERE run_id = ${runId}
        ORDER BY alert_id LIMIT ${MAX_TOLD}) AS told JOIN alerts a ON a.id = told.alert_id
      LEFT JOIN schedules s ON s.uid = a.schedule_uid
      LEFT JOIN schedule_versions v ON v.schedule_uid = s.uid AND v.version = s.version
    ORDER BY a.id`);
  return {
    notifier: about.notifier.id,
    event: about.event,
    at: about.now,
    alerts: rows.map(({ labels, ...row }): ToldAlert => {
      const alert = toAlert(row);
      return { ...alert, labels: labels ?? {}, url: urlOf(alert) };
    }),
    more: Math.max(0, (rows[0]?.count ?? 0) - MAX_TOLD),
    fallbackFor: about.fallback_for,
  };
}
