import { type SQL, sql } from 'drizzle-orm';
import type { Instant } from '../../core/instant.ts';
import type { Run } from '../../core/runs/run.ts';
import { uuids } from '../../postgres/sql/arrays.ts';
import type { Executor } from '../../postgres/executor.ts';
import { type InstantText, rowsOf, toInstant } from '../../postgres/sql/rows.ts';

export type RecentRun = Pick<Run, 'id' | 'trigger' | 'status' | 'latenessMs'> & { scheduledFor: Instant };

/** The newest runs of each of these schedules, by uid, newest first; at most so many of each, open and ended ones alike. */
export async function recentRuns(
  db: Executor,
  scheduleUids: readonly string[],
  count: number,
): Promise<ReadonlyMap<string, RecentRun[]>> {
  const found = new Map<string, RecentRun[]>(scheduleUids.map((uid) => [uid, []]));
  if (scheduleUids.length === 0 || count === 0) return found;
  const rows = await rowsOf<Row>(db, statement(scheduleUids, count));
  for (const { uid, scheduled_for, lateness_ms, ...run } of rows) {
    const latenessMs = lateness_ms === null ? null : Number(lateness_ms);
    found.get(uid)?.push({ ...run, scheduledFor: toInstant(scheduled_for), latenessMs });
  }
  return found;
}

interface Row extends Pick<Run, 'id' | 'trigger' | 'status'> {
  uid: string;
  scheduled_for: InstantText;
  /** A bigint, as text. */
  lateness_ms: string | null;
}

const COLUMNS = sql`r.id, r.scheduled_for, r.trigger, r.status, r.lateness_ms`;

/** Each part is read from an index that has the runs of one schedule in the order of the answer; only open unplanned runs are sorted. */
function statement(scheduleUids: readonly string[], count: number): SQL {
  const planned = sql`r.trigger IN ('schedule', 'catchUp', 'backfill')`;
  // Rows are compared, not values, for the reason that partsOf (run-pages.ts) has.
  const between = (column: SQL, first: SQL, last: SQL) =>
    sql`(r.schedule_uid, ${column}) >= (s.uid, ${first}) AND (r.schedule_uid, ${column}) <= (s.uid, ${last})`;
  const newest = (table: SQL, where: SQL, by: SQL) =>
    sql`(SELECT ${COLUMNS} FROM ${table} r WHERE ${where} ORDER BY r.schedule_uid DESC, ${by} DESC LIMIT ${count})`;
  const parts = [
    newest(sql`history`, between(sql`r.id`, MIN_ID, MAX_ID), sql`r.id`),
    newest(
      sql`runs`,
      sql`${planned} AND ${between(sql`r.scheduled_for`, sql`'-infinity'::timestamptz`, sql`'infinity'::timestamptz`)}`,
      sql`r.scheduled_for`,
    ),
    sql`(SELECT ${COLUMNS} FROM runs r WHERE r.schedule_uid = s.uid AND r.trigger NOT IN ('schedule', 'catchUp', 'backfill') ORDER BY r.id DESC LIMIT ${count})`,
  ];
  return sql`SELECT s.uid, p.* FROM unnest(${uuids(scheduleUids)}) AS s(uid), LATERAL (
      SELECT * FROM (${sql.join(parts, sql` UNION ALL `)}) AS r ORDER BY r.id DESC LIMIT ${count}) AS p
    ORDER BY s.uid, p.id DESC`;
}

const MIN_ID = sql`'00000000-0000-0000-0000-000000000000'::uuid`;
const MAX_ID = sql`'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid`;
