import { type SQL, sql } from 'drizzle-orm';
import type { RunTable } from '../record-columns.ts';

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

function newest(
  table: RunTable,
  { by, of }: { by: SQL; of: SQL },
  { columns, conditions, limit }: Wanted,
): SQL {
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
const AT_ANY_TIME = between(
  sql`r.scheduled_for`,
  sql`'-infinity'::timestamptz`,
  sql`'infinity'::timestamptz`,
);
