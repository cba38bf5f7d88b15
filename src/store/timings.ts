import { type SQL, sql } from 'drizzle-orm';
import { timingText } from './definitions.ts';

/** What a row of `schedules` says of its fire times. */
export interface TimingRow {
  /** Null where the version before this one wrote the row last: it knows nothing but the other two. */
  timing: string | null;
  cron: string;
  timezone: string | null;
}

export function timingColumns(table: SQL): SQL {
  return sql`CASE WHEN ${table}.timing_version = ${table}.version THEN ${table}.timing END AS timing, ${table}.cron, ${table}.timezone`;
}

/** For `readTiming`. */
export function timingOfRow({ timing, cron, timezone }: TimingRow): string {
  return timing ?? timingText({ cron, timezone });
}
