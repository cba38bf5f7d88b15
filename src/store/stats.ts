import { type SQL, sql } from 'drizzle-orm';
import { type Instant, isoInstant } from '../core/instant.ts';
import { uuids } from './arrays.ts';
import type { Executor } from './executor.ts';
import { rowsOf } from './rows.ts';

export interface StatsFilter {
  /** Only runs of these schedules, by uid; absent: of all, one-off runs included. */
  scheduleUids?: readonly string[] | undefined;
  /** Inclusive, of scheduledFor. */
  from?: Instant | undefined;
  /** Exclusive. */
  to?: Instant | undefined;
}

/** What stands in the rows: counts of runs, and how late their first attempts began. */
export interface RunStats {
  total: number;
  succeeded: number;
  failed: number;
  unknown: number;
  abandoned: number;
  skipped: number;
  cancelled: number;
  /** waiting, pending or running. */
  open: number;
  /** Ever found lost; what is in none of the next three is open or was cancelled. */
  lost: number;
  /** Handed off since. */
  recovered: number;
  /** Never handed off, and `failed` or `unknown`. */
  lostAndFailed: number;
  lostAndAbandoned: number;
  /** Take-overs by recovery; at least one of each lost run. */
  recoveries: number;
  /** Milliseconds, each one that was measured (nearest rank); null where none was. */
  lateness: { p50: number | null; p95: number | null; p99: number | null; max: number | null };
}

/** A whole history is read row by row: on two cores about half a second for a million rows that are in memory. */
export const STATS_LIMIT_MS = 30_000;

type CountName = Exclude<keyof RunStats, 'lateness'>;
/** bigint: a string on the wire. */
type Row = Record<CountName, string> & {
  p50: string | null;
  p95: string | null;
  p99: string | null;
  max: string | null;
};

/** One pass over the runs of the period, by the primary key; over those of one schedule by its own two indexes. */
export async function runStats(db: Executor, filter: StatsFilter): Promise<RunStats> {
  const counts = Object.entries(COUNTS).map(([name, count]) => sql`${count} AS ${sql.identifier(name)}`);
  const [row] = await rowsOf<Row>(
    db,
    sql`SELECT counted.*, percentiles[1] AS p50, percentiles[2] AS p95, percentiles[3] AS p99 FROM (
      SELECT ${sql.join(counts, sql`, `)}, max(lateness_ms) AS max,
        percentile_disc(ARRAY[0.5, 0.95, 0.99]) WITHIN GROUP (ORDER BY lateness_ms) AS percentiles
      FROM (${runsOf(filter)}) AS r) AS counted`,
  );
  if (!row) throw new Error('the stats statement answered no row');
  const { p50, p95, p99, max, ...counted } = row;
  return {
    ...(Object.fromEntries(
      Object.keys(COUNTS).map((name) => [name, Number(counted[name as CountName])]),
    ) as Record<CountName, number>),
    lateness: { p50: toNumber(p50), p95: toNumber(p95), p99: toNumber(p99), max: toNumber(max) },
  };
}

const where = (condition: SQL): SQL => sql`count(*) FILTER (WHERE ${condition})`;
const whereStatus = (status: string): SQL => where(sql`status = ${status}`);

const COUNTS: Record<CountName, SQL> = {
  total: sql`count(*)`,
  succeeded: whereStatus('succeeded'),
  failed: whereStatus('failed'),
  unknown: whereStatus('unknown'),
  abandoned: whereStatus('abandoned'),
  skipped: whereStatus('skipped'),
  cancelled: whereStatus('cancelled'),
  open: where(sql`status IN ('waiting', 'pending', 'running')`),
  lost: where(sql`lost_at IS NOT NULL`),
  recovered: where(sql`lost_at IS NOT NULL AND handed_off_at IS NOT NULL`),
  lostAndFailed: where(
    sql`lost_at IS NOT NULL AND handed_off_at IS NULL AND status IN ('failed', 'unknown')`,
  ),
  lostAndAbandoned: where(sql`lost_at IS NOT NULL AND handed_off_at IS NULL AND status = 'abandoned'`),
  // One that was given up, or stays unknown, at its first loss was taken over as well.
  recoveries: sql`coalesce(sum(greatest(recoveries, 1)) FILTER (WHERE lost_at IS NOT NULL), 0)`,
};

function runsOf({ scheduleUids, from, to }: StatsFilter): SQL {
  const conditions = [
    scheduleUids && sql`schedule_uid = ANY(${uuids(scheduleUids)})`,
    from === undefined ? undefined : sql`scheduled_for >= ${isoInstant(from)}::timestamptz`,
    to === undefined ? undefined : sql`scheduled_for < ${isoInstant(to)}::timestamptz`,
  ].filter((condition) => condition !== undefined);
  const select = (...more: SQL[]): SQL =>
    sql`SELECT status, lost_at, handed_off_at, recoveries, lateness_ms FROM runs
      WHERE ${sql.join([sql`true`, ...conditions, ...more], sql` AND `)}`;
  if (!scheduleUids) return select();
  // Planned and other runs of a schedule stand in two indexes.
  return sql`${select(sql`trigger IN ('schedule', 'catchUp', 'backfill')`)}
    UNION ALL ${select(sql`trigger NOT IN ('schedule', 'catchUp', 'backfill')`)}`;
}

function toNumber(text: string | null): number | null {
  return text === null ? null : Number(text);
}
