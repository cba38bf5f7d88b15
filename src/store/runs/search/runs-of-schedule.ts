import { type SQL, sql } from 'drizzle-orm';
import type { RunTable } from '../record-columns.ts';
import type { Scope } from '../../../core/access/scope.ts';
import type { Instant } from '../../../core/instant.ts';
import type { Run } from '../../../core/runs/run.ts';
import type { Executor } from '../../../postgres/executor.ts';
import { uuids } from '../../../postgres/sql/arrays.ts';
import { recordsOf } from '../../../postgres/sql/rows.ts';

/** What is read of a run `r` in each table: the same columns in the same order. */
export type ColumnsOfRuns = Readonly<Record<RunTable, SQL>>;

/** Columns that both tables have under one name. */
export function inBoth(columns: SQL): ColumnsOfRuns {
  return { runs: columns, history: columns };
}

interface Wanted {
  columns: ColumnsOfRuns;
  /** On `r`, a run. */
  conditions: readonly SQL[];
  limit: number;
  /** It is a caller with a scope who asks. */
  inScope?: boolean | undefined;
}

/**
 * Statements for the newest runs of one schedule, `s.uid`, newest first: each reads an index that has them in this order. Only open
 * runs that were not planned are sorted.
 */
export function newestOfSchedule(tables: readonly RunTable[], wanted: Wanted): SQL[] {
  return tables.flatMap((table) =>
    table === 'history'
      ? [newest('history', { by: sql`r.id`, of: between(sql`r.id`, FIRST_ID, LAST_ID) }, wanted)]
      : [
          newest('runs', { by: sql`r.scheduled_for`, of: sql`${PLANNED} AND ${AT_ANY_TIME}` }, wanted),
          newest(
            'runs',
            { by: sql`r.id`, of: sql`${UNPLANNED} AND ${wanted.inScope ? BY_ITS_INDEX : BY_UID}` },
            wanted,
          ),
        ],
  );
}

function newest(table: RunTable, { by, of }: { by: SQL; of: SQL }, { columns, conditions, limit }: Wanted): SQL {
  const where = sql.join([of, ...conditions], sql` AND `);
  return sql`(SELECT ${columns[table]} FROM ${sql.raw(table)} r WHERE ${where}
    ORDER BY r.schedule_uid DESC, ${by} DESC LIMIT ${limit})`;
}

/**
 * Not `=`: with it, PostgreSQL would read all runs of one schedule in id order. And rows are compared, not values: with values the
 * planner expects so few runs of a schedule that it sorts them all.
 */
function between(column: SQL, first: SQL, last: SQL): SQL {
  return sql`(r.schedule_uid, ${column}) >= (s.uid, ${first}) AND (r.schedule_uid, ${column}) <= (s.uid, ${last})`;
}

const FIRST_ID = sql`'00000000-0000-0000-0000-000000000000'::uuid`;
const LAST_ID = sql`'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid`;
/** In the words of two partial indexes of open runs. */
const PLANNED = sql`r.trigger IN ('schedule', 'catchUp', 'backfill')`;
const UNPLANNED = sql`r.trigger NOT IN ('schedule', 'catchUp', 'backfill')`;
const BY_UID = sql`r.schedule_uid = s.uid`;
/** With `=`, where most open runs are one-off runs of one target, the planner would expect every schedule to have as many, and read all. */
const BY_ITS_INDEX = sql`r.schedule_uid >= s.uid AND r.schedule_uid <= s.uid`;
const AT_ANY_TIME = between(sql`r.scheduled_for`, sql`'-infinity'::timestamptz`, sql`'infinity'::timestamptz`);

export type RecentRun = Pick<Run, 'id' | 'trigger' | 'status' | 'latenessMs'> & {
  scheduledFor: Instant;
  claimedAt: Instant | null;
};

/** The newest runs of each of these schedules, by uid, newest first; at most so many of each, open and ended ones alike. */
export async function recentRuns(
  db: Executor,
  scheduleUids: readonly string[],
  count: number,
  callersScope: Scope,
): Promise<ReadonlyMap<string, RecentRun[]>> {
  const found = new Map<string, RecentRun[]>(scheduleUids.map((uid) => [uid, []]));
  if (scheduleUids.length === 0 || count === 0) return found;
  const columns = inBoth(sql`r.id, r.scheduled_for, r.trigger, r.status, r.claimed_at, r.lateness_ms`);
  const parts = newestOfSchedule(['history', 'runs'], {
    columns,
    conditions: [],
    limit: count,
    inScope: callersScope !== null,
  });
  const rows = await recordsOf<RecentRun & { uid: string }>(db)(sql`-- recentRuns
    SELECT s.uid, p.* FROM unnest(${uuids(scheduleUids)}) AS s(uid), LATERAL (
      SELECT * FROM (${sql.join(parts, sql` UNION ALL `)}) AS r ORDER BY r.id DESC LIMIT ${count}) AS p
    ORDER BY s.uid, p.id DESC`);
  for (const { uid, ...run } of rows) found.get(uid)?.push(run);
  return found;
}
