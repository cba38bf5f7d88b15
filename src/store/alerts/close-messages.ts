import { sql } from 'drizzle-orm';
import type { MessageEvent } from '../../core/alerts/message.ts';
import type { Notifier } from '../../core/alerts/notifier.ts';
import type { RunRecord } from '../../core/runs/run-record.ts';
import { endRun, releaseRun } from '../../core/runs/transitions.ts';
import { uuids } from '../../postgres/sql/arrays.ts';
import { databaseNow } from '../../postgres/sql/database-now.ts';
import type { Executor, Transaction } from '../../postgres/executor.ts';
import { rowsOf } from '../../postgres/sql/rows.ts';
import { lockOpenRuns } from '../runs/lock-runs.ts';
import { type RunChange, saveLockedRuns } from '../runs/save-runs.ts';
import { type GatheredTelling, type TextsAt, payloadsOf } from './message-payloads.ts';
import { lockNotifiersToTell } from './notifiers-to-tell.ts';

interface GatheredMessage {
  runId: string;
  notifierId: string;
}

/** Messages that no longer gather, the oldest first; and how long until the next one is such, null: there is none. */
export async function findGathered(
  db: Executor,
  { limit, besides }: { limit: number; besides: readonly string[] },
): Promise<{ due: GatheredMessage[]; nextInMs: number | null }> {
  const rows = await rowsOf<{ run_id: string; notifier_id: string; ms: number }>(db)(sql`-- findGathered
    SELECT run_id, notifier_id, extract(epoch FROM gathers_until - clock_timestamp())::float8 * 1000 AS ms FROM messages
    WHERE gathers_until IS NOT NULL AND run_id <> ALL (${uuids(besides)}) ORDER BY gathers_until LIMIT ${limit}`);
  return {
    due: rows.filter(({ ms }) => ms <= 0).map((row) => ({ runId: row.run_id, notifierId: row.notifier_id })),
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
  const going = found.flatMap((one) => goingOn(one, free));
  await closeLocked(tx, found, { going, at: { now, publicUrl } });
  return { toSend: going.length, locked: [...locked, ...waiting.map(({ runId }) => runId)] };
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
  const locked = new Set(await openAmong(tx, others));
  return {
    found: rows
      .filter(({ run_id }) => !locked.has(run_id))
      .map((row) => ({ ...row, run: runs.get(row.run_id) ?? null })),
    locked: [...locked],
  };
}

async function openAmong(tx: Transaction, ids: readonly string[]): Promise<string[]> {
  if (ids.length === 0) return [];
  const rows = await rowsOf<{ id: string }>(tx)(sql`-- openAmong
    SELECT id FROM runs WHERE id = ANY (${uuids(ids)})`);
  return rows.map(({ id }) => id);
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
  { going, at }: { going: readonly GoingMessage[]; at: TextsAt },
): Promise<void> {
  if (found.length === 0) return;
  const { now } = at;
  const payloads = await payloadsOf(tx, going, at);
  const released = going.map(({ runId, run, notifier: { version: scheduleVersion } }): RunChange => {
    const ownPayload = payloads.get(runId) ?? null;
    return { from: run, to: { ...releaseRun(run, now), dueAt: now, scheduleVersion, ownPayload } };
  });
  const goes = new Set(going.map(({ runId }) => runId));
  const cancelled = found.flatMap(({ run }): RunChange[] =>
    run?.status !== 'waiting' || goes.has(run.id)
      ? []
      : [{ from: run, to: endRun(run, { status: 'cancelled', reason: 'request' }, now) }],
  );
  await saveLockedRuns(tx, [...released, ...cancelled]);
  await tx.execute(sql`-- closeLocked
    UPDATE messages SET gathers_until = NULL WHERE run_id = ANY (${uuids(found.map(({ run_id }) => run_id))})`);
}
