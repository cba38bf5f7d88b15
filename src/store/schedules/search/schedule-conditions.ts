import { type SQL, sql } from 'drizzle-orm';
import { CALENDAR_ENDS_DAYS } from '../../../core/alerts/alert.ts';
import type { Executor } from '../../../postgres/executor.ts';
import { onlyColumnOf } from '../../../postgres/sql/rows.ts';

/** For a row named `schedules`: whether nothing is left for it to fire, or to follow. */
export const isOver = sql`(schedules.next_fire_at IS NULL AND NOT schedules.heartbeat AND (schedules.after_uid IS NULL
  OR coalesce(schedules.after_end_at <= (SELECT clock_timestamp()), false)))`;

/**
 * For a row named `schedules`: whether it is not active, or has no next fire of its own. Few rows are so, and these have an index,
 * `schedules_apart`. It contains every status but `active`.
 */
export const isApart = sql`(NOT schedules.enabled OR schedules.error IS NOT NULL OR schedules.next_fire_at IS NULL)`;

/** Of schedules that are late: of which such an episode is open. */
export const LATE_UIDS = sql`SELECT a.schedule_uid FROM alerts a WHERE a.kind = 'late' AND a.until IS NULL`;

/** Of a row `c` of `calendars`: its end is near, or was. Days of UTC. */
export const ENDS_SOON: SQL = sql`c.valid_until <= (SELECT (clock_timestamp() AT TIME ZONE 'UTC')::date + ${sql.raw(String(CALENDAR_ENDS_DAYS))})`;

/** All of them are meant. */
export type Labels = readonly (readonly [key: string, value: string])[];

/** `uid`s of the schedules that have all of these labels as they are now; a deleted schedule has none. `named`: conditions on `s.id`. */
export function labelled(labels: Labels, named: readonly SQL[]): SQL {
  return sql`SELECT s.uid FROM schedule_versions v JOIN schedules s ON s.uid = v.schedule_uid AND s.version = v.version
    WHERE ${have(labels, named)}`;
}

/**
 * Whether the schedule of this uid has them. Evaluated for each row by itself, in the order of the rows: an EXISTS
 * might be evaluated for all schedules before the first row is read.
 */
export function isLabelled(uid: SQL, labels: Labels, named: readonly SQL[]): SQL {
  return sql`(SELECT ${have(labels, named)} FROM schedules s JOIN schedule_versions v ON v.schedule_uid = s.uid AND v.version = s.version
    WHERE s.uid = ${uid} LIMIT 1)`;
}

/** Uids of labelled schedules, at most `limit`; only of these, if some are given. */
export async function uidsLabelled(
  db: Executor,
  labels: Labels,
  { among, named, limit }: { among?: SQL | undefined; named: readonly SQL[]; limit: number },
): Promise<string[]> {
  return onlyColumnOf<string>(db)(sql`-- uidsLabelled
    ${labelled(labels, named)} ${among ? sql`AND s.uid = ANY (${among})` : sql``} LIMIT ${limit}`);
}

/** In the words of the index `schedule_versions_labels`. Two values of one label are two conditions, which nothing meets. */
function have(labels: Labels, named: readonly SQL[]): SQL {
  const each = labels.map(
    ([key, value]) => sql`(v.definition->'labels') @> ${JSON.stringify({ [key]: value })}::jsonb`,
  );
  return sql`(v.definition->'labels') <> '{}'::jsonb AND ${sql.join([...each, ...named], sql` AND `)}`;
}
