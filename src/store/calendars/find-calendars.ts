import { sql } from 'drizzle-orm';
import { uuids } from '../../postgres/sql/arrays.ts';
import type { Executor } from '../../postgres/executor.ts';
import { rowBytes } from '../../postgres/sql/page-room.ts';
import { type InstantText, rowsOf, toInstant } from '../../postgres/sql/rows.ts';
import type { NamedRows, NamedThing } from '../names/find-named.ts';

export interface Calendar extends NamedThing {
  description: string | null;
  /** As they were sent. */
  dates: readonly string[];
  /** The last day of which it says anything, as `2026-12-31`; null: none is known. */
  validUntil: string | null;
  /** The version by which the next fires of all schedules that use it were moved. */
  appliedVersion: number;
}

export const CALENDAR_ROWS: NamedRows<Calendar> = {
  table: 'calendars',
  whole: (page) => sql`SELECT n.*, v.dates, ${rowBytes({ documents: [sql`v.dates`] })} AS row_bytes
    FROM (${page}) AS n JOIN calendar_versions v ON v.calendar_id = n.id AND v.version = n.version`,
  toThing: ({ id, description, dates, valid_until, version, applied_version, updated_at }: Row) => {
    const [validUntil, appliedVersion, updatedAt] = [valid_until, applied_version, toInstant(updated_at)];
    return { id, description, dates: dates ?? [], validUntil, version, appliedVersion, updatedAt };
  },
};

interface UnappliedAsked {
  /** Edited at least so long ago. */
  seconds: number;
  /** Those behind this id first. */
  after: string;
  limit: number;
  /** Who of this process walks along users of calendars. */
  walkers: readonly string[];
}

/** Calendars by id whose users' next fires do not all follow the last edit yet, and along whose users nobody else walks. */
export async function listUnapplied(
  db: Executor,
  { seconds, after, limit, walkers }: UnappliedAsked,
): Promise<string[]> {
  const rows = await rowsOf<{ id: string }>(db)(sql`-- listUnapplied
    WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now)
    SELECT id FROM calendars c WHERE applied_version < version
      AND updated_at <= (SELECT now FROM clock) - make_interval(secs => ${seconds})
      AND NOT EXISTS (SELECT FROM calendar_walks w WHERE w.calendar_id = c.id AND w.version = c.version
        AND w.until > (SELECT now FROM clock) AND w.walker <> ALL (${uuids(walkers)}))
    ORDER BY id <= ${after}, id LIMIT ${limit}`);
  return rows.map((row) => row.id);
}

interface Row {
  id: string;
  description: string | null;
  dates: string[] | null;
  valid_until: string | null;
  version: number;
  applied_version: number;
  updated_at: InstantText;
}
