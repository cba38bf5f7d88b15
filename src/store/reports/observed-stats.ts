import { sql } from 'drizzle-orm';
import type { Instant } from '../../core/instant.ts';
import { firstRunIdAt } from '../../core/runs/run.ts';
import type { Executor } from '../../postgres/executor.ts';
import { rowsOf } from '../../postgres/sql/rows.ts';

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
