import { type SQL, sql } from 'drizzle-orm';
import type { AlertKind } from '../../core/alerts/alert.ts';
import type { Instant } from '../../core/instant.ts';
import type { RunStatus } from '../../core/runs/run.ts';
import { instants, ints, texts, uuids } from '../../postgres/sql/arrays.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { rowsOf } from '../../postgres/sql/rows.ts';

/** Something broke, or is healed: an episode opens, or is over. */
export interface AlertCause {
  kind: 'breaks' | 'heals';
  alertKind: AlertKind;
  schedule: { uid: string; id: string; version: number };
  /** The run that it is about; null: about none. */
  runId: string | null;
  status: RunStatus | 'late';
  /** When it broke or was healed. What heals an episode must come after everything that broke it. */
  at: Instant;
  /** For `missed`: how many fires were. */
  count?: number;
}

/** Writes these as effects, in the transaction of what causes them: the effects loop opens and closes the episodes. Answers how many. */
export async function writeAlertEffects(tx: Transaction, causes: readonly AlertCause[]): Promise<number> {
  if (causes.length === 0) return 0;
  const schedules = causes.map(({ schedule }) => schedule);
  await tx.execute(sql`-- writeAlertEffects
    INSERT INTO effects (kind, alert_kind, run_id, schedule_uid, schedule_version, schedule_id, trigger, status, finished_at, attempt)
    SELECT c.kind, c.alert_kind, c.run_id, c.uid, c.version, c.id, 'schedule', c.status, c.at, c.count
    FROM unnest(${texts(causes.map(({ kind }) => kind))}, ${texts(causes.map(({ alertKind }) => alertKind))},
      ${uuids(causes.map(({ runId }) => runId))}, ${uuids(schedules.map(({ uid }) => uid))},
      ${ints(schedules.map(({ version }) => version))}, ${texts(schedules.map(({ id }) => id))},
      ${texts(causes.map(({ status }) => status))}, ${instants(causes.map(({ at }) => at))},
      ${ints(causes.map(({ count = 0 }) => count))}) AS c(kind, alert_kind, run_id, uid, version, id, status, at, count)`);
  return causes.length;
}

/** A schedule of which these kinds are healed at that moment. */
export interface Healed {
  schedule: AlertCause['schedule'];
  alertKinds: readonly AlertKind[];
  at: Instant;
}

/** Writes an effect for each of these episodes that is open. Answers how many. */
export async function healOpenAlerts(tx: Transaction, healed: readonly Healed[]): Promise<number> {
  const rows = healed.flatMap(({ schedule, alertKinds, at }) =>
    alertKinds.map((alertKind) => ({ schedule, alertKind, at })),
  );
  if (rows.length === 0) return 0;
  const schedules = rows.map(({ schedule }) => schedule);
  const written = await rowsOf(tx)(sql`-- healOpenAlerts
    INSERT INTO effects (kind, alert_kind, schedule_uid, schedule_version, schedule_id, trigger, status, finished_at, attempt)
    SELECT 'heals', h.kind, h.uid, h.version, h.id, 'schedule', 'succeeded', h.at, 0
    FROM unnest(${texts(rows.map(({ alertKind }) => alertKind))}, ${uuids(schedules.map(({ uid }) => uid))},
      ${ints(schedules.map(({ version }) => version))}, ${texts(schedules.map(({ id }) => id))},
      ${instants(rows.map(({ at }) => at))}) AS h(kind, uid, version, id, at)
    WHERE EXISTS (SELECT FROM alerts a WHERE a.schedule_uid = h.uid AND a.kind = h.kind AND a.until IS NULL)
    RETURNING id`);
  return written.length;
}

/** Closes all episodes of these schedules without a word: a person paused or deleted them. */
export async function closeAlertsSilently(
  tx: Transaction,
  uids: readonly string[],
  at: Instant,
): Promise<void> {
  if (uids.length === 0) return;
  await tx.execute(sql`-- closeAlertsSilently
    WITH closed AS (
      UPDATE alerts SET until = greatest(${new Date(at).toISOString()}::timestamptz, since), look_at = NULL
      WHERE schedule_uid = ANY (${uuids(uids)}) AND until IS NULL RETURNING id
    )
    DELETE FROM alert_tellings WHERE alert_id IN (SELECT id FROM closed)`);
}

/** Whether any episode is open. Ordered as its index is: one look for all rows of a statement, which finds none where all is well. */
const ANY_OPEN_ALERT = sql`(SELECT id FROM alerts WHERE until IS NULL ORDER BY id LIMIT 1) IS NOT NULL`;

/** True if an episode of that kind is open, else false or null. */
export function hasOpenAlert(uid: SQL, kind: AlertKind): SQL {
  return sql`(${ANY_OPEN_ALERT}
        AND (SELECT true FROM alerts a WHERE a.schedule_uid = ${uid} AND a.kind = ${sql.raw(`'${kind}'`)} AND a.until IS NULL))`;
}

/** The kind of episode that a success ends, as SQL. */
export const ENDED_BY_SUCCESS = sql.raw(`'${'failed' satisfies AlertKind}'`);

/** True if a success of the schedule ends an episode, else false or null. */
export function isFailing(uid: SQL): SQL {
  return hasOpenAlert(uid, 'failed');
}
