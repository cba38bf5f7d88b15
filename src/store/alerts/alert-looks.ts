import { type SQL, sql } from 'drizzle-orm';
import type { AlertKind } from '../../core/alerts/alert.ts';
import type { Instant } from '../../core/instant.ts';
import { instants, uuids } from '../../postgres/sql/arrays.ts';
import { databaseNow } from '../../postgres/sql/database-now.ts';
import type { Executor, Transaction } from '../../postgres/executor.ts';
import { type InstantText, rowsOf, toInstant, toInstantOrNull } from '../../postgres/sql/rows.ts';
import { closeAlertsSilently, healOpenAlerts } from './alert-effects.ts';
import { newestSuccesses } from './broken-schedules.ts';

/** Episodes that are to be looked at by now, the longest overdue first. */
export async function findAlertLooks(
  db: Executor,
  { limit, besides }: { limit: number; besides: readonly string[] },
): Promise<string[]> {
  const rows = await rowsOf<{ id: string }>(db)(sql`-- findAlertLooks
    SELECT id FROM alerts WHERE look_at IS NOT NULL AND look_at <= (SELECT clock_timestamp()) AND id <> ALL (${uuids(besides)})
    ORDER BY look_at LIMIT ${limit}`);
  return rows.map(({ id }) => id);
}

interface Row {
  id: string;
  uid: string;
  kind: AlertKind;
  broken_at: InstantText;
  schedule_id: string;
  version: number | null;
  last_fire_at: InstantText | null;
  next_fire_at: InstantText | null;
  error: string | null;
}

/** How often an episode is looked at that no effect ends. */
const LOOK_EVERY_MS = 4_000;

/**
 * Looks at episodes whose end writes no effect: `missed` is over with the next fire, `error` once the schedule is planned; and a success
 * that was being written when a failure was found is found by now. Writes the effects that end them. Answers how many.
 */
export async function lookAtAlerts(tx: Transaction, ids: readonly string[]): Promise<number> {
  const rows = await rowsOf<Row>(tx)(sql`-- lookAtAlerts
    SELECT a.id, a.schedule_uid AS uid, a.kind, a.broken_at, a.schedule_id, s.version, s.last_fire_at, s.next_fire_at, s.error
    FROM alerts a LEFT JOIN schedules s ON s.uid = a.schedule_uid
    WHERE a.id = ANY (${uuids(ids)}) AND a.until IS NULL ORDER BY a.id FOR UPDATE OF a SKIP LOCKED`);
  const now = await databaseNow(tx);
  const failed = rows.filter(({ kind }) => kind === 'failed');
  const successes = await newestSuccesses(
    tx,
    new Map(failed.map(({ uid, broken_at }) => [uid, toInstant(broken_at)])),
  );
  const healed = rows.flatMap((row) => {
    const at = healedAt(row, successes.get(row.uid) ?? null, now);
    if (at === null || row.version === null) return [];
    const schedule = { uid: row.uid, id: row.schedule_id, version: row.version };
    return [{ schedule, alertKinds: [row.kind], at }];
  });
  const gone = rows.filter(({ version }) => version === null).map(({ uid }) => uid);
  await closeAlertsSilently(tx, gone, now);
  await setLooks(tx, rows, now);
  return healOpenAlerts(tx, healed);
}

/** Null: it is not over, as far as can be seen. */
function healedAt(
  { kind, broken_at, last_fire_at, error }: Row,
  successAt: Instant | null,
  now: Instant,
): Instant | null {
  if (kind === 'failed') return successAt;
  if (kind === 'error') return error === null ? now : null;
  const firedAt = toInstantOrNull(last_fire_at);
  return firedAt !== null && firedAt > toInstant(broken_at) ? firedAt : null;
}

async function setLooks(tx: Transaction, rows: readonly Row[], now: Instant): Promise<void> {
  const next = ({ kind, version, next_fire_at }: Row): Instant | null => {
    if (kind === 'failed' || version === null) return null;
    const firesAt = kind === 'missed' ? toInstantOrNull(next_fire_at) : null;
    return Math.max(now + LOOK_EVERY_MS, Math.min(firesAt ?? 0, now + MAX_LOOK_MS));
  };
  await tx.execute(sql`-- setLooks
    UPDATE alerts SET look_at = n.at FROM unnest(${uuids(rows.map(({ id }) => id))}, ${instants(rows.map(next))}) AS n(id, at)
    WHERE alerts.id = n.id AND alerts.until IS NULL`);
}

/** A next fire may be moved to an earlier moment. */
const MAX_LOOK_MS = 60_000;

/** Deletes what is older than the retention: episodes that are over, and messages. Answers whether there may be more. */
export async function forgetOldAlerts(tx: Transaction, before: Instant, limit: number): Promise<boolean> {
  const at: SQL = sql`${new Date(before).toISOString()}`;
  const alerts = await rowsOf(tx)(sql`-- forgetOldAlerts
    DELETE FROM alerts WHERE id IN (SELECT id FROM alerts WHERE until IS NOT NULL AND until < ${at} ORDER BY until LIMIT ${limit})
    RETURNING id`);
  const messages = await rowsOf<{ run_id: string }>(tx)(sql`-- forgetOldAlerts
    DELETE FROM messages WHERE run_id IN (
      SELECT run_id FROM messages WHERE created_at < ${at} AND gathers_until IS NULL ORDER BY created_at LIMIT ${limit})
    RETURNING run_id`);
  await tx.execute(sql`-- forgetOldAlerts
    DELETE FROM message_alerts WHERE run_id = ANY (${uuids(messages.map(({ run_id }) => run_id))})`);
  return alerts.length === limit || messages.length === limit;
}
