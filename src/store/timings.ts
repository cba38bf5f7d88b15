import { type SQL, sql } from 'drizzle-orm';
import { timingText } from './definitions.ts';

/** What a row of `schedules` says of its fire times. */
export interface TimingRow {
  /** Null where the version before this one wrote the row last: it knows nothing but the other two. */
  timing: string | null;
  /** Null: not asked for, as there is `timing`. */
  cron: string | null;
  timezone: string | null;
}

export function timingColumns(table: SQL): SQL {
  return sql`CASE WHEN ${table}.timing_version = ${table}.version THEN ${table}.timing END AS timing, ${table}.cron, ${table}.timezone`;
}

/** The others only where there is no `timing`. */
export function timingColumnsAtLeast(table: SQL): SQL {
  const timing = sql`CASE WHEN ${table}.timing_version = ${table}.version THEN ${table}.timing END`;
  return sql`${timing} AS timing, CASE WHEN ${timing} IS NULL THEN ${table}.cron END AS cron,
    CASE WHEN ${timing} IS NULL THEN ${table}.timezone END AS timezone`;
}

/** Of a row of `schedules`, by that name: whether nothing is left for it to fire, or to follow. */
export const isOver = sql`(schedules.next_fire_at IS NULL AND (schedules.after_uid IS NULL
  OR schedules.timing_version <> schedules.version OR coalesce(schedules.after_end_at <= (SELECT clock_timestamp()), false)))`;

/**
 * Of a row of `schedules`, by that name: whether it is anything but active with a next fire of its own. Few are, and these have an
 * index, `schedules_apart`; every status but `active` is among them.
 */
export const isApart = sql`(NOT schedules.enabled OR schedules.error IS NOT NULL OR schedules.next_fire_at IS NULL)`;

/** What a row says of overlap; that version knows of none. */
export function overlapOf(table: SQL): SQL {
  return sql`CASE WHEN ${table}.timing_version = ${table}.version THEN ${table}.overlap ELSE 'allow' END`;
}

/** For `readTiming`. */
export function timingOfRow({ timing, cron, timezone }: TimingRow): string {
  return timing ?? timingText({ cron: cron ?? '', timezone });
}
