import { type SQL, sql } from 'drizzle-orm';
import type { Scope } from '../../core/access/scope.ts';
import type { Instant } from '../../core/instant.ts';
import { firstRunIdAt } from '../../core/runs/run.ts';
import { bigints, hasOneOfIds, uuids } from '../../postgres/sql/arrays.ts';
import type { Executor } from '../../postgres/executor.ts';
import { rowsOf } from '../../postgres/sql/rows.ts';
import { fewOneOffs, fewSchedulesInScope } from '../runs/search/runs-in-scope.ts';
import { namesSeen } from '../scopes/in-scope.ts';

interface StatsFilter {
  /** Only runs of these schedules, by uid; absent: of all, one-off runs included. Messages of notifiers never count. */
  scheduleUids?: readonly string[] | undefined;
  /** Only runs that it allows to read; of schedules that are named, the caller has made sure. */
  scope: Scope;
  /** Inclusive, of scheduledFor. */
  from?: Instant | undefined;
  /** Exclusive. */
  to?: Instant | undefined;
}

/** The contents of the rows: counts of runs, and how late their first attempts began. */
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
  /** Ever found lost. A run that none of the next three counts is open or was cancelled. */
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

/** A whole history is read row by row: on two cores, a million rows that are in memory take about a quarter of a second. */
export const STATS_LIMIT_MS = 30_000;

type CountName = Exclude<keyof RunStats, 'lateness'>;
/** The shares of the runs that are not later than each percentile. */
const PARTS = { p50: 0.5, p95: 0.95, p99: 0.99 };
type Percentile = keyof typeof PARTS;

/** A percentile: the `nth` of the runs whose lateness rounds to `rounded`. */
interface Wanted {
  part: Percentile;
  rounded: number;
  nth: number;
}

/** bigint and numeric: strings on the wire. */
type Row = Record<CountName, string> & { max: string | null; wanted: Wanted[] };

/**
 * One pass over the runs of the period, by id; over those of one schedule by its own index. They are grouped by all
 * that counts, which several processes can do side by side: sorting every lateness took longer than all the rest. Long ones are
 * grouped as if rounded, so that groups stay few; where a percentile is one of these, a second pass finds which.
 */
export async function runStats(db: Executor, filter: StatsFilter): Promise<RunStats> {
  const counts = Object.entries(COUNTS).map(([name, count]) => sql`${count} AS ${sql.identifier(name)}`);
  const runs = runsOf(filter, await ofScope(db, filter));
  const parts = Object.entries(PARTS).map(([name, share]) => sql`(${name}, ${share}::float8)`);
  const [row] = await rowsOf<Row>(db)(sql`-- runStats
    WITH alike AS MATERIALIZED (
      SELECT status, lost_at IS NOT NULL AS lost, handed_off_at IS NOT NULL AS handed_off, ${ROUNDED} AS rounded, count(*) AS runs,
        sum(greatest(recoveries, 1)) AS recoveries, max(lateness_ms) AS latest
      FROM (${runs}) AS r GROUP BY 1, 2, 3, 4
    ), ranked AS MATERIALIZED (
      SELECT rounded, sum(runs)::float8 AS runs, (sum(sum(runs)) OVER (ORDER BY rounded))::float8 AS up_to
      FROM alike WHERE rounded IS NOT NULL GROUP BY rounded
    ), wanted AS (
      SELECT p.part, w.rounded, w.nth
      FROM (VALUES ${sql.join(parts, sql`, `)}) AS p(part, share), (SELECT max(up_to) AS measured FROM ranked) AS m,
        LATERAL (SELECT rounded, ceil(p.share * measured) - (up_to - runs) AS nth FROM ranked
          WHERE up_to >= ceil(p.share * measured) ORDER BY rounded LIMIT 1) AS w
    )
    SELECT ${sql.join(counts, sql`, `)}, max(latest) AS max,
      (SELECT coalesce(jsonb_agg(w), '[]') FROM wanted AS w) AS wanted
    FROM alike`);
  if (!row) throw new Error('the stats statement answered no row');
  const { max, wanted, ...counted } = row;
  return {
    ...(Object.fromEntries(Object.keys(COUNTS).map((name) => [name, Number(counted[name as CountName])])) as Record<
      CountName,
      number
    >),
    lateness: { ...(await percentiles(db, runs, wanted)), max: max === null ? null : Number(max) },
  };
}

/** A run that has ended since the first pass may move one of more than ten seconds to its neighbour. */
async function percentiles(
  db: Executor,
  runs: SQL,
  wanted: readonly Wanted[],
): Promise<Record<Percentile, number | null>> {
  const exact = new Map(wanted.map(({ part, rounded }) => [part, rounded]));
  const long = wanted.filter(({ rounded }) => rounded >= EXACT_BELOW_MS);
  if (long.length > 0) {
    const rows = await rowsOf<{ part: Percentile; ms: string }>(db)(sql`-- percentiles
      SELECT w.part, a.lateness_ms AS ms FROM jsonb_to_recordset(${JSON.stringify(long)}::jsonb) AS w(part text, rounded bigint, nth bigint)
      JOIN (SELECT rounded, lateness_ms, row_number() OVER (PARTITION BY rounded ORDER BY lateness_ms) AS nth
        FROM (SELECT lateness_ms, ${ROUNDED} AS rounded FROM (${runs}) AS r) AS r
        WHERE rounded = ANY (${bigints(long.map(({ rounded }) => rounded))})) AS a ON a.rounded = w.rounded AND a.nth = w.nth`);
    for (const { part, ms } of rows) exact.set(part, Number(ms));
  }
  const of = (part: Percentile) => exact.get(part) ?? null;
  return { p50: of('p50'), p95: of('p95'), p99: of('p99') };
}

const EXACT_BELOW_MS = 10_000;
/** To four digits, downwards. */
const ROUNDED = sql`CASE WHEN lateness_ms < ${EXACT_BELOW_MS} THEN lateness_ms
  WHEN lateness_ms < 100000 THEN lateness_ms - lateness_ms % 10 WHEN lateness_ms < 1000000 THEN lateness_ms - lateness_ms % 100
  WHEN lateness_ms < 10000000 THEN lateness_ms - lateness_ms % 1000 ELSE lateness_ms - lateness_ms % 10000 END`;

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

/** A condition for each kind of run that a scope has; none: of all runs, or of the schedules that are named. */
async function ofScope(db: Executor, { scope, scheduleUids }: StatsFilter): Promise<SQL[]> {
  if (scope === null || scheduleUids) return [];
  const uids = await fewSchedulesInScope(db, { scope, use: 'read' });
  const ids = await fewOneOffs(db, { scope, use: 'read' });
  const ofSchedules = uids ? ofAny(uids) : sql.join(namesSeen(sql`schedule_id`, scope), sql` AND `);
  if (ids) return [ofSchedules, hasOneOfIds(sql`id`, ids)];
  const named = [sql`trigger <> 'schedule'`, sql`trigger = 'api'`, ...namesSeen(sql`key COLLATE "C"`, scope)];
  return [ofSchedules, sql.join(named, sql` AND `)];
}

function ofAny(scheduleUids: readonly string[]): SQL {
  return sql`schedule_uid = ANY(${uuids(scheduleUids)})`;
}

function runsOf({ scheduleUids, from, to }: StatsFilter, kinds: readonly SQL[]): SQL {
  const conditions = [
    scheduleUids && ofAny(scheduleUids),
    from === undefined ? undefined : sql`id >= ${firstRunIdAt(from)}::uuid`,
    to === undefined ? undefined : sql`id < ${firstRunIdAt(to)}::uuid`,
  ].filter((condition) => condition !== undefined);
  const select = (table: SQL, kind: readonly SQL[]): SQL =>
    sql`SELECT status, lost_at, handed_off_at, recoveries, lateness_ms FROM ${table}
      WHERE ${sql.join([sql`trigger <> 'notify'`, ...conditions, ...kind], sql` AND `)}`;
  const each = kinds.length === 0 ? [[]] : kinds.map((kind) => [kind]);
  const parts = each.flatMap((kind) => [select(sql`runs`, kind), select(sql`history`, kind)]);
  return sql.join(parts, sql` UNION ALL `);
}

/** What the jobs of a schedule said about its observed occurrences, and beside them. */
export interface ObservedStats {
  expected: number;
  reported: number;
  /** It ended without any report. */
  missed: number;
  extra: number;
  failed: number;
  extraFailed: number;
  p50: number | null;
  p95: number | null;
  max: number | null;
}

/** Of runs whose `scheduledFor` lies in a period, the end exclusive. Each is read once, by the index of its schedule. */
export async function observedStats(
  db: Executor,
  { uid, from, to }: { uid: string; from: Instant; to: Instant },
): Promise<ObservedStats> {
  const ofPeriod = sql`r.schedule_uid = ${uid} AND r.observed
      AND r.id >= ${firstRunIdAt(from)}::uuid AND r.id < ${firstRunIdAt(to)}::uuid`;
  const columns = sql`r.trigger = 'reported' AS extra, r.status, r.handed_off_at IS NOT NULL AS reported, r.lateness_ms`;
  const [row] = await rowsOf<Record<keyof ObservedStats, string | null>>(db)(sql`-- observedStats
    SELECT count(*) FILTER (WHERE NOT extra) AS expected, count(*) FILTER (WHERE NOT extra AND reported) AS reported,
      count(*) FILTER (WHERE NOT extra AND NOT reported AND status = 'failed') AS missed, count(*) FILTER (WHERE extra) AS extra,
      count(*) FILTER (WHERE NOT extra AND reported AND status = 'failed') AS failed,
      count(*) FILTER (WHERE extra AND status = 'failed') AS "extraFailed",
      percentile_disc(0.5) WITHIN GROUP (ORDER BY lateness_ms) FILTER (WHERE NOT extra) AS p50,
      percentile_disc(0.95) WITHIN GROUP (ORDER BY lateness_ms) FILTER (WHERE NOT extra) AS p95,
      max(lateness_ms) FILTER (WHERE NOT extra) AS max
    FROM (SELECT ${columns} FROM runs r WHERE ${ofPeriod} UNION ALL SELECT ${columns} FROM history r WHERE ${ofPeriod}) AS r`);
  if (!row) throw new Error('the statement about observed runs answered no row');
  const numberOf = (value: string | null) => (value === null ? null : Number(value));
  const count = (value: string | null) => Number(value ?? 0);
  return {
    ...{ expected: count(row.expected), reported: count(row.reported), missed: count(row.missed) },
    ...{ extra: count(row.extra), failed: count(row.failed), extraFailed: count(row.extraFailed) },
    ...{ p50: numberOf(row.p50), p95: numberOf(row.p95), max: numberOf(row.max) },
  };
}
