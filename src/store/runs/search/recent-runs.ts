import { sql } from 'drizzle-orm';
import type { Scope } from '../../../core/access/scope.ts';
import type { Instant } from '../../../core/instant.ts';
import type { Run } from '../../../core/runs/run.ts';
import { uuids } from '../../../postgres/sql/arrays.ts';
import type { Executor } from '../../../postgres/executor.ts';
import { type InstantText, rowsOf, toInstant } from '../../../postgres/sql/rows.ts';
import { inBoth, newestOfSchedule } from './runs-of-schedule.ts';

export type RecentRun = Pick<Run, 'id' | 'trigger' | 'status' | 'latenessMs'> & { scheduledFor: Instant };

/** The newest runs of each of these schedules, by uid, newest first; at most so many of each, open and ended ones alike. */
export async function recentRuns(
  db: Executor,
  scheduleUids: readonly string[],
  count: number,
  callersScope: Scope,
): Promise<ReadonlyMap<string, RecentRun[]>> {
  const found = new Map<string, RecentRun[]>(scheduleUids.map((uid) => [uid, []]));
  if (scheduleUids.length === 0 || count === 0) return found;
  const columns = inBoth(sql`r.id, r.scheduled_for, r.trigger, r.status, r.lateness_ms`);
  const parts = newestOfSchedule(['history', 'runs'], {
    columns,
    conditions: [],
    limit: count,
    inScope: callersScope !== null,
  });
  const rows = await rowsOf<Row>(db)(sql`-- recentRuns
    SELECT s.uid, p.* FROM unnest(${uuids(scheduleUids)}) AS s(uid), LATERAL (
      SELECT * FROM (${sql.join(parts, sql` UNION ALL `)}) AS r ORDER BY r.id DESC LIMIT ${count}) AS p
    ORDER BY s.uid, p.id DESC`);
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
