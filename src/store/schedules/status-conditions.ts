import { sql } from 'drizzle-orm';

/** Of a row of `schedules`, by that name: whether nothing is left for it to fire, or to follow. */
export const isOver = sql`(schedules.next_fire_at IS NULL AND (schedules.after_uid IS NULL
  OR coalesce(schedules.after_end_at <= (SELECT clock_timestamp()), false)))`;

/**
 * Of a row of `schedules`, by that name: whether it is anything but active with a next fire of its own. Few are, and these have an
 * index, `schedules_apart`; every status but `active` is among them.
 */
export const isApart = sql`(NOT schedules.enabled OR schedules.error IS NOT NULL OR schedules.next_fire_at IS NULL)`;
