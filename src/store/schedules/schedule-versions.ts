import { sql } from 'drizzle-orm';
import { type Instant, isoInstant } from '../../core/instant.ts';
import type { Definition } from '../../core/schedules/schedule.ts';
import { type StoredDefinition, readDefinition } from '../../core/schedules/stored-definition.ts';
import type { Executor } from '../../postgres/executor.ts';
import { type InstantText, rowsOf, toInstant } from '../../postgres/sql/rows.ts';

/** One write of a schedule. */
export interface ScheduleVersion {
  uid: string;
  version: number;
  at: Instant;
  by: string | null;
  change: 'created' | 'updated' | 'deleted';
  /** The schedule from then on; for a deletion: the schedule until then. */
  definition: Definition;
}

interface VersionPosition {
  at: Instant;
  uid: string;
  version: number;
}

/** For every schedule that ever had the id, newest first: (at, uid, version) descending. */
export async function listVersions(
  db: Executor,
  scheduleId: string,
  { before, limit }: { before: VersionPosition | undefined; limit: number },
): Promise<ScheduleVersion[]> {
  const older = before
    ? sql`AND (at, schedule_uid, version) < (${isoInstant(before.at)}::timestamptz, ${before.uid}::uuid, ${before.version}::int)`
    : sql``;
  // The page is chosen by its keys: definitions are large, and an id may have had many.
  const rows = await rowsOf<{
    uid: string;
    version: number;
    at: InstantText;
    by: string | null;
    change: ScheduleVersion['change'];
    definition: StoredDefinition;
    payload: string | null;
  }>(db)(sql`-- listVersions
    WITH page AS MATERIALIZED (
      SELECT schedule_uid, version FROM schedule_versions WHERE schedule_id = ${scheduleId} ${older}
      ORDER BY at DESC, schedule_uid DESC, version DESC LIMIT ${limit}
    )
    SELECT v.schedule_uid AS uid, v.version, v.at, v.by, v.change, v.definition, v.payload
    FROM page JOIN schedule_versions v ON v.schedule_uid = page.schedule_uid AND v.version = page.version
    ORDER BY v.at DESC, v.schedule_uid DESC, v.version DESC`);
  return rows.map(({ definition, payload, at, ...row }) => ({
    ...row,
    at: toInstant(at),
    definition: readDefinition(definition, payload),
  }));
}
