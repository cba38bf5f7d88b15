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

/** A whole history is read row by row: on two cores about a quarter of a second for a million rows that are in memory. */
export const STATS_LIMIT_MS = 30_000;

type CountName = Exclude<keyof RunStats, 'lateness'>;
/** bigint and numeric: strings on the wire. */
type Row = Record<CountName, string> & {
  p50: string | null;
  p95: string | null;
  p99: string | null;
  max: string | null;
};

/**
 * One pass over the runs of the period, by the primary key; over those of one schedule by its own two indexes. They are grouped by all
 * that counts, which several processes can do side by side and which leaves few rows; sorting every lateness took longer than all the rest.
 */
export async function runStats(db: Executor, filter: StatsFilter): Promise<RunStats> {
  const counts = Object.entries(COUNTS).map(([name, count]) => sql`${count} AS ${sql.identifier(name)}`);
  const [row] = await rowsOf<Row>(
    db,
    sql`WITH alike AS MATERIALIZED (
      SELECT status, lost_at IS NOT NULL AS lost, handed_off_at IS NOT NULL AS handed_off, lateness_ms, count(*) AS runs,
        sum(greatest(recoveries, 1)) AS recoveries
      FROM (${runsOf(filter)}) AS r GROUP BY 1, 2, 3, 4
    ), ranked AS MATERIALIZED (
      SELECT lateness_ms, (sum(sum(runs)) OVER (ORDER BY lateness_ms))::float8 AS rank
      FROM alike WHERE lateness_ms IS NOT NULL GROUP BY lateness_ms
    )
    SELECT counted.*, late.*
    FROM (SELECT ${sql.join(counts, sql`, `)} FROM alike) AS counted,
      (SELECT ${percentile(0.5)} AS p50, ${percentile(0.95)} AS p95, ${percentile(0.99)} AS p99, max(lateness_ms) AS max
        FROM ranked, (SELECT max(rank) AS measured FROM ranked) AS m) AS late`,
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

/** The first that so large a part of all is no later than: that of `percentile_disc`. */
function percentile(part: number): SQL {
  return sql`min(lateness_ms) FILTER (WHERE rank >= ceil(${part}::float8 * measured))`;
}

const sumOf = (what: SQL, condition: SQL): SQL => sql`coalesce(sum(${what}) FILTER (WHERE ${condition}), 0)`;
const where = (condition: SQL): SQL => sumOf(sql`runs`, condition);
const whereStatus = (status: string): SQL => where(sql`status = ${status}`);

const COUNTS: Record<CountName, SQL> = {
  total: where(sql`true`),
  succeeded: whereStatus('succeeded'),
  failed: whereStatus('failed'),
  unknown: whereStatus('unknown'),
  abandoned: whereStatus('abandoned'),
  skipped: whereStatus('skipped'),
  cancelled: whereStatus('cancelled'),
  open: where(sql`status IN ('waiting', 'pending', 'running')`),
  lost: where(sql`lost`),
  recovered: where(sql`lost AND handed_off`),
  lostAndFailed: where(sql`lost AND NOT handed_off AND status IN ('failed', 'unknown')`),
  lostAndAbandoned: where(sql`lost AND NOT handed_off AND status = 'abandoned'`),
  // One that was given up, or stays unknown, at its first loss was taken over as well.
  recoveries: sumOf(sql`recoveries`, sql`lost`),
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
