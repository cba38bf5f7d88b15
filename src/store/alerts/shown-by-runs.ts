import { sql } from 'drizzle-orm';
import type { AlertKind } from '../../core/alerts/alert.ts';
import type { Instant } from '../../core/instant.ts';
import type { Expect } from '../../core/schedules/expect.ts';
import { type InstantText, rowsOf, toInstant } from '../../postgres/sql/rows.ts';
import { instants, ints, uuids } from '../../postgres/sql/arrays.ts';
import type { Transaction } from '../../postgres/executor.ts';

/** The kinds of which runs show whether they are over. */
const SHOWN = ['failed', 'unstarted', 'slow', 'missed'] as const satisfies readonly AlertKind[];

/** What broke a schedule, or may have: by kind, the newest moment. */
interface Broken {
  uid: string;
  expect: Expect | null;
  brokenAt: ReadonlyMap<AlertKind, Instant>;
}

/** Runs of a schedule, the newest by `scheduledFor`, that are asked. */
const LOOKED_AT = 50;

type Row = { uid: string } & Record<(typeof SHOWN)[number], InstantText | null>;

/**
 * By uid and kind, when a run last showed that the schedule is well, as far as its newest runs tell: bounds are those of its present
 * definition. What an older run shows, which ended after newer ones, an effect tells; or the next run does.
 */
export async function shownByRuns(
  tx: Transaction,
  broken: readonly Broken[],
): Promise<Map<string, Map<AlertKind, Instant>>> {
  const asked = broken.filter(({ brokenAt }) => SHOWN.some((kind) => brokenAt.has(kind)));
  if (asked.length === 0) return new Map();
  const brokenAt = (kind: AlertKind) => asked.map((one) => one.brokenAt.get(kind) ?? null);
  const first = Math.min(...SHOWN.flatMap(brokenAt).map((at) => at ?? Infinity));
  const rows = await rowsOf<Row>(tx)(sql`-- shownByRuns
    SELECT u.uid, h.* FROM unnest(${uuids(asked.map(({ uid }) => uid))}, ${instants(brokenAt('missed'))},
        ${ints(asked.map(({ expect }) => expect?.startWithinSeconds ?? null))},
        ${ints(asked.map(({ expect }) => expect?.finishWithinSeconds ?? null))}) AS u(uid, missed_at, start_within, finish_within),
      LATERAL (SELECT max(finished_at) FILTER (WHERE status = 'succeeded') AS failed,
        max(begun_at) FILTER (WHERE lateness_ms <= u.start_within * 1000::bigint) AS unstarted,
        max(finished_at) FILTER (WHERE status IN ('succeeded', 'failed')
          AND finished_at <= first_at + make_interval(secs => u.finish_within - was_slow::int)) AS slow,
        max(finished_at) FILTER (WHERE status = 'succeeded' AND trigger = 'catchUp' AND scheduled_for >= u.missed_at) AS missed
        FROM (SELECT status, trigger, scheduled_for, finished_at, lateness_ms,
            scheduled_for + make_interval(secs => lateness_ms / 1000.0) AS begun_at, coalesce('finish' = ANY (unmet), false) AS was_slow,
            CASE WHEN attempts > 1 THEN first_claimed_at ELSE coalesce(handoff_started_at, first_claimed_at) END AS first_at
          FROM history WHERE schedule_uid = u.uid AND ended_at >= ${new Date(first).toISOString()}
          ORDER BY id DESC LIMIT ${LOOKED_AT}) AS newest) AS h`);
  return new Map(
    rows.map((row) => [
      row.uid,
      new Map(SHOWN.flatMap((kind) => (row[kind] === null ? [] : [[kind, toInstant(row[kind])]]))),
    ]),
  );
}
