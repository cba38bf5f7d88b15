import { type SQL, sql } from 'drizzle-orm';
import type { AlertKind } from '../../core/alerts/alert.ts';
import type { Cause } from '../../core/alerts/episode.ts';
import { type Instant, isoInstant } from '../../core/instant.ts';
import type { RunStatus } from '../../core/runs/run.ts';
import { instants, ints, texts, uuids } from '../../postgres/sql/arrays.ts';
import type { Executor, Transaction } from '../../postgres/executor.ts';
import { rowsOf } from '../../postgres/sql/rows.ts';

/** Something broke, or is healed: an episode opens, or is over. What heals one must come after everything that broke it. */
export interface AlertCause extends Omit<Cause, 'count'>, Partial<Pick<Cause, 'count'>> {
  schedule: { uid: string; id: string; version: number };
  status: RunStatus;
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
interface Healed {
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

/** Of schedules that a person paused or deleted: who, and how. */
interface TakenAway {
  uid: string;
  overBy: string;
}

/**
 * Closes all episodes of these schedules: a person paused or deleted them. The notifiers that were told of one are seen to by the watch:
 * an incident is resolved, and no chat hears of it.
 */
export async function closeAlertsOf(tx: Transaction, taken: readonly TakenAway[], at: Instant): Promise<void> {
  if (taken.length === 0) return;
  await tx.execute(sql`-- closeAlertsOf
    WITH closed AS (
      UPDATE alerts a SET until = greatest(${isoInstant(at)}::timestamptz, since), look_at = NULL, over_by = t.over_by
      FROM unnest(${uuids(taken.map(({ uid }) => uid))}, ${texts(taken.map(({ overBy }) => overBy))}) AS t(uid, over_by)
      WHERE a.schedule_uid = t.uid AND a.until IS NULL RETURNING a.id
    )
    UPDATE alert_tellings SET remind_at = clock_timestamp(),
      held_until = CASE WHEN held_until IS NOT NULL THEN greatest(held_until, clock_timestamp() + interval '1 second') END
    WHERE alert_id IN (SELECT id FROM closed) AND NOT told_over`);
}

/** Has the watch look at all open episodes of these schedules, which were edited, or fire at another moment. */
export async function lookAtAlertsOf(tx: Executor, uids: readonly string[]): Promise<void> {
  if (uids.length === 0) return;
  await tx.execute(sql`-- lookAtAlertsOf
    UPDATE alerts SET look_at = clock_timestamp() WHERE schedule_uid = ANY (${uuids(uids)}) AND until IS NULL`);
}

/** Whether any episode is open. Ordered as its index is: one look for all rows of a statement, which finds none where all is well. */
const ANY_OPEN_ALERT = sql`(SELECT id FROM alerts WHERE until IS NULL ORDER BY id LIMIT 1) IS NOT NULL`;

/** True if an episode of that kind, as SQL, is open, else false or null. */
export function hasOpenAlert(uid: SQL, kind: SQL): SQL {
  return sql`(${ANY_OPEN_ALERT}
        AND (SELECT true FROM alerts a WHERE a.schedule_uid = ${uid} AND a.kind = ${kind} AND a.until IS NULL))`;
}
