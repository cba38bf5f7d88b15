import { sql } from 'drizzle-orm';
import { type Notifier, handedTo } from '../../core/alerts/notifier.ts';
import type { MessageEvent } from '../../core/alerts/alert.ts';
import { tellsApart } from '../../core/alerts/texts/channels.ts';
import type { RunRecord } from '../../core/runs/run-record.ts';
import { endRun, releaseRun } from '../../core/runs/transitions.ts';
import type { Executor, Transaction } from '../../postgres/executor.ts';
import { uuids } from '../../postgres/sql/arrays.ts';
import { databaseNow, recordsOf, rowsOf } from '../../postgres/sql/rows.ts';
import { lockNotifiersToTell } from '../notifiers/rows.ts';
import { type RunChange, lockOpenRuns, openAmong, saveLockedRuns } from '../runs/lock-and-save.ts';
import { waitForEarlier } from './message-order.ts';
import { type GatheredTelling, payloadsOf, type TextsAt } from './message-payloads.ts';
import { recordMessages, waitingFor } from './record-messages.ts';

interface GatheredMessage {
  runId: string;
  notifierId: string;
}

/** Messages that no longer gather, the oldest first; and how long until the next one is such, null: there is none. */
export async function findGathered(
  db: Executor,
  { limit, besides }: { limit: number; besides: readonly string[] },
): Promise<{ due: GatheredMessage[]; nextInMs: number | null }> {
  const rows = await recordsOf<GatheredMessage & { ms: number }>(db)(sql`-- findGathered
    SELECT run_id, notifier_id, extract(epoch FROM gathers_until - clock_timestamp())::float8 * 1000 AS ms FROM messages
    WHERE gathers_until IS NOT NULL AND run_id <> ALL (${uuids(besides)}) ORDER BY gathers_until LIMIT ${limit}`);
  return {
    due: rows.filter(({ ms }) => ms <= 0),
    nextInMs: rows.find(({ ms }) => ms > 0)?.ms ?? null,
  };
}

interface ClosedMessages {
  /** Those that may be sent now. */
  toSend: number;
  /** Of these another transaction has the notifier or the run: they are left for another look. */
  locked: string[];
}

/**
 * Gives each message its text, for its notifier's present version, and lets it go on. Nothing joins it from then on, so that each attempt
 * sends the same. That of a notifier that is gone or disabled is cancelled.
 */
export async function closeMessages(
  tx: Transaction,
  messages: readonly GatheredMessage[],
  publicUrl: string | null,
): Promise<ClosedMessages> {
  const { free, locked: busy } = await lockNotifiersToTell(
    tx,
    messages.map(({ notifierId }) => notifierId),
  );
  const [waiting, mine] = [
    messages.filter(({ notifierId }) => busy.has(notifierId)),
    messages.filter(({ notifierId }) => !busy.has(notifierId)),
  ];
  const { found, locked } = await lockMessages(tx, mine);
  const now = await databaseNow(tx);
  const all = found.flatMap((one) => goingOn(one, free));
  const at = { now, publicUrl };
  // It was gathered for another channel.
  const apart = all.filter(({ notifier }) => tellsApart(notifier));
  const { toSend, unfinished } = await tellApart(tx, apart, at);
  const going = all.filter((one) => !apart.includes(one));
  const done = found.filter(({ run_id }) => !unfinished.has(run_id));
  const sent = await closeLocked(tx, done, { going, at });
  return { toSend: toSend + sent, locked: [...locked, ...waiting.map(({ runId }) => runId)] };
}

interface LockedMessage {
  run_id: string;
  notifier_id: string;
  event: MessageEvent;
  fallback_for: string | null;
  /** Null: it has ended, or is gone. */
  run: RunRecord | null;
}

/** A message of which the run cannot be locked stays as it is. */
async function lockMessages(
  tx: Transaction,
  messages: readonly GatheredMessage[],
): Promise<{ found: LockedMessage[]; locked: string[] }> {
  const asked = uuids(messages.map(({ runId }) => runId));
  const rows = await rowsOf<Omit<LockedMessage, 'run'>>(tx)(sql`-- lockMessages
    SELECT run_id, notifier_id, event, fallback_for FROM messages
    WHERE run_id = ANY (${asked}) AND gathers_until IS NOT NULL ORDER BY run_id FOR UPDATE SKIP LOCKED`);
  const ids = rows.map(({ run_id }) => run_id);
  const runs = new Map((await lockOpenRuns(tx, ids, 'skipLocked')).map((run) => [run.id, run]));
  const others = ids.filter((id) => !runs.has(id));
  const locked = await openAmong(tx, others);
  return {
    found: rows
      .filter(({ run_id }) => !locked.has(run_id))
      .map((row) => ({ ...row, run: runs.get(row.run_id) ?? null })),
    locked: [...locked],
  };
}

type GoingMessage = GatheredTelling & { run: RunRecord };

function goingOn(
  { run_id: runId, notifier_id, event, fallback_for: fallbackFor, run }: LockedMessage,
  notifiers: ReadonlyMap<string, Notifier>,
): GoingMessage[] {
  const notifier = notifiers.get(notifier_id);
  if (run?.status !== 'waiting' || run.scheduleUid !== notifier?.uid) return [];
  return [{ runId, notifier, event, fallbackFor, run }];
}

async function closeLocked(
  tx: Transaction,
  found: readonly LockedMessage[],
  { going: all, at }: { going: readonly GoingMessage[]; at: TextsAt },
): Promise<number> {
  if (found.length === 0) return 0;
  const { now } = at;
  const payloads = await payloadsOf(tx, all, at);
  const going = all.filter(({ runId }) => payloads.has(runId));
  const { waits, earlier } = await waitForEarlier(
    tx,
    going.map(({ runId }) => runId),
  );
  const released = going.map(({ runId, run, notifier }): RunChange => {
    const waiting = waitingFor(waits.get(runId));
    const text = { dueAt: now, ...handedTo(notifier), ownPayload: payloads.get(runId) ?? null };
    const hasDependents = run.hasDependents || earlier.has(runId);
    const to = waiting.status ? run : releaseRun(run, now);
    return { from: run, to: { ...to, ...text, hasDependents, ...waiting } };
  });
  const goes = new Set(going.map(({ runId }) => runId));
  const cancelled = found.flatMap(({ run }): RunChange[] =>
    run?.status !== 'waiting' || goes.has(run.id)
      ? []
      : [{ from: run, to: endRun(run, { status: 'cancelled', reason: 'replaced' }, now) }],
  );
  await saveLockedRuns(tx, [...released, ...cancelled]);
  await tx.execute(sql`-- closeLocked
    UPDATE messages SET gathers_until = NULL WHERE run_id = ANY (${uuids(found.map(({ run_id }) => run_id))})`);
  return released.length - waits.size;
}

/** Episodes that one transaction tells apart. */
const MOST_APART = 500;

/** Each episode of these messages is told in a message of its own; of very many, the rest by later transactions (`unfinished`). */
async function tellApart(
  tx: Transaction,
  messages: readonly GoingMessage[],
  at: TextsAt,
): Promise<{ toSend: number; unfinished: ReadonlySet<string> }> {
  if (messages.length === 0) return { toSend: 0, unfinished: new Set() };
  const share = Math.ceil(MOST_APART / messages.length);
  const rows = await rowsOf<{ run_id: string; alert_id: string }>(tx)(sql`-- tellApart
    DELETE FROM message_alerts WHERE (run_id, alert_id) IN (
      SELECT m.run_id, a.alert_id FROM unnest(${uuids(messages.map(({ runId }) => runId))}) AS m(run_id)
        CROSS JOIN LATERAL (SELECT alert_id FROM message_alerts WHERE run_id = m.run_id ORDER BY alert_id LIMIT ${share}) AS a)
    RETURNING run_id, alert_id`);
  const told = Map.groupBy(rows, ({ run_id }) => run_id);
  const idsOf = ({ runId }: GoingMessage) => (told.get(runId) ?? []).map(({ alert_id }) => alert_id);
  const tellings = messages.map((one) => ({
    notifier: one.notifier,
    event: one.event,
    alertIds: idsOf(one),
  }));
  const { toSend } = await recordMessages(tx, tellings, at);
  return {
    toSend,
    unfinished: new Set(messages.filter((one) => idsOf(one).length === share).map(({ runId }) => runId)),
  };
}
