import { sql } from 'drizzle-orm';
import { type Instant, isoInstant } from '../../core/instant.ts';
import type { Definition } from '../../core/schedules/schedule.ts';
import { type StoredDefinition, readDefinition } from '../../core/schedules/stored-definition.ts';
import type { Executor, Transaction } from '../../postgres/executor.ts';
import { ints } from '../../postgres/sql/arrays.ts';
import { type PageRoom, type Sized, readInRoom, rowBytes, withinRoom } from '../../postgres/sql/lists.ts';
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

/** For every schedule that ever had the id, newest first: (at, uid, version) descending. `room`: where its bytes end, the list ends. */
export async function listVersions(
  db: Executor,
  scheduleId: string,
  { before, limit, room }: { before: VersionPosition | undefined; limit: number; room: PageRoom },
): Promise<ScheduleVersion[]> {
  const older = before
    ? sql`AND (at, schedule_uid, version) < (${isoInstant(before.at)}::timestamptz, ${before.uid}::uuid, ${before.version}::int)`
    : sql``;
  // The page is chosen by its keys: definitions are large, and an id may have had many.
  interface Row extends Sized {
    uid: string;
    version: number;
    at: InstantText;
    by: string | null;
    change: ScheduleVersion['change'];
    definition: StoredDefinition;
    payload: string | null;
  }
  const bytes = rowBytes({ texts: [sql`v.payload`], documents: [sql`v.definition`] });
  const page = sql`WITH page AS MATERIALIZED (
      SELECT schedule_uid, version FROM schedule_versions WHERE schedule_id = ${scheduleId} ${older}
      ORDER BY at DESC, schedule_uid DESC, version DESC LIMIT ${limit}
    )
    SELECT v.schedule_uid AS uid, v.version, v.at, v.by, v.change, v.definition, v.payload, ${bytes} AS row_bytes
    FROM page JOIN schedule_versions v ON v.schedule_uid = page.schedule_uid AND v.version = page.version
    ORDER BY v.at DESC, v.schedule_uid DESC, v.version DESC`;
  const read = () =>
    rowsOf<Row>(db)(sql`-- listVersions
    ${withinRoom(page, sql`p.at DESC, p.uid DESC, p.version DESC`, room)}`);
  const rows = await readInRoom(room, read, ({ row_bytes }) => row_bytes);
  return rows.map(({ uid, version, at, by, change, definition, payload }) => ({
    ...{ uid, version, at: toInstant(at), by, change },
    definition: readDefinition(definition, payload),
  }));
}

/** What runs of a version need of its definition; its target without what is sent. */
export type RunRules = Pick<
  Definition,
  | 'target'
  | 'priority'
  | 'limit'
  | 'overlap'
  | 'expiresAfterSeconds'
  | 'pauseAfterFailures'
  | 'successWithinSeconds'
  | 'expect'
  | 'observe'
>;

/** By version. Retention keeps them until the transaction ends; one that it has dropped is left out. */
export async function keepVersions(
  tx: Transaction,
  uid: string,
  versions: readonly number[],
): Promise<Map<number, RunRules>> {
  const rows = await rowsOf<{ version: number; rules: RunRules }>(tx)(sql`-- keepVersions
    SELECT v.version, jsonb_build_object('target', (v.definition->'target') - ${SENT}::text[], 'priority', v.definition->'priority',
      'limit', v.definition->'limit', 'overlap', v.definition->'overlap', 'expiresAfterSeconds', v.definition->'expiresAfterSeconds',
      'pauseAfterFailures', v.definition->'pauseAfterFailures', 'successWithinSeconds', v.definition->'successWithinSeconds',
      'expect', v.definition->'expect', 'observe', v.definition->'observe') AS rules
    FROM schedule_versions v WHERE v.schedule_uid = ${uid} AND v.version = ANY (${ints(versions)})
    ORDER BY v.version FOR KEY SHARE`);
  return new Map(rows.map(({ version, rules }) => [version, rules]));
}

const SENT = sql.raw(`'{headers,body,secret,lookup,cancel,outcome}'`);
