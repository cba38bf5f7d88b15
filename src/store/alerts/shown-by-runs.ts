import { sql } from 'drizzle-orm';
import type { AlertKind } from '../../core/alerts/alert.ts';
import type { Instant } from '../../core/instant.ts';
import { mayBeCut } from '../../core/runs/attempts/outcome.ts';
import { answerFault, resultFault } from '../../core/runs/attempts/outcome-rules.ts';
import { type Expect, type ResultBound, successBoundsIn } from '../../core/schedules/expect.ts';
import { type InstantText, rowsOf, toInstant } from '../../postgres/sql/rows.ts';
import { instants, ints, uuids } from '../../postgres/sql/arrays.ts';
import type { Transaction } from '../../postgres/executor.ts';

/** The kinds of which runs show whether they are over. */
const SHOWN = ['failed', 'unstarted', 'slow', 'tooFast', 'result', 'missed'] as const satisfies readonly AlertKind[];

/** What broke a schedule, or may have: by kind, the newest moment. */
interface Broken {
  uid: string;
  expect: Expect | null;
  brokenAt: ReadonlyMap<AlertKind, Instant>;
}

/** Runs of a schedule, the newest by `scheduledFor`, that are asked. */
const LOOKED_AT = 50;

type Row = { uid: string } & Record<Exclude<(typeof SHOWN)[number], 'result'>, InstantText | null>;

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
        ${ints(asked.map(({ expect }) => expect?.finishWithinSeconds ?? null))},
        ${ints(asked.map(({ expect }) => expect?.atLeastSeconds ?? null))})
        AS u(uid, missed_at, start_within, finish_within, at_least),
      LATERAL (SELECT max(finished_at) FILTER (WHERE status = 'succeeded') AS failed,
        max(begun_at) FILTER (WHERE lateness_ms <= u.start_within * 1000::bigint) AS unstarted,
        max(finished_at) FILTER (WHERE status IN ('succeeded', 'failed')
          AND finished_at <= first_at + make_interval(secs => u.finish_within - was_slow::int)) AS slow,
        max(finished_at) FILTER (WHERE status = 'succeeded'
          AND finished_at >= first_at + make_interval(secs => u.at_least + was_fast::int)) AS "tooFast",
        max(finished_at) FILTER (WHERE status = 'succeeded' AND trigger = 'catchUp' AND scheduled_for >= u.missed_at) AS missed
        FROM (SELECT status, trigger, scheduled_for, finished_at, lateness_ms,
            scheduled_for + make_interval(secs => lateness_ms / 1000.0) AS begun_at, coalesce('finish' = ANY (unmet), false) AS was_slow,
            coalesce('tooFast' = ANY (unmet), false) AS was_fast,
            CASE WHEN attempts > 1 THEN first_claimed_at ELSE coalesce(handoff_started_at, first_claimed_at) END AS first_at
          FROM history WHERE schedule_uid = u.uid AND ended_at >= ${new Date(first).toISOString()}
          ORDER BY id DESC LIMIT ${LOOKED_AT}) AS newest) AS h`);
  const results = await newestResults(tx, asked, first);
  return new Map(
    rows.map((row) => {
      const shown = SHOWN.map((kind) => [kind, kind === 'result' ? results.get(row.uid) : row[kind]] as const);
      return [row.uid, new Map(shown.flatMap(([kind, at]) => (at ? [[kind, toInstant(at)]] : [])))];
    }),
  );
}

interface ResultRow {
  uid: string;
  at: InstantText;
  body: string | null;
  is_reported: boolean;
  was_unmet: boolean;
}

/** By uid, when the newest success ended, where its result is what the present definition expects, as far as it is kept. */
async function newestResults(
  tx: Transaction,
  broken: readonly Broken[],
  since: Instant,
): Promise<Map<string, InstantText>> {
  const asked = new Map(
    broken.flatMap(({ uid, expect, brokenAt }) => {
      const bounds = successBoundsIn(expect)?.result;
      return bounds && brokenAt.has('result') ? [[uid, bounds] as const] : [];
    }),
  );
  if (asked.size === 0) return new Map();
  const rows = await rowsOf<ResultRow>(tx)(sql`-- newestResults
    SELECT u.uid, newest.* FROM unnest(${uuids([...asked.keys()])}) AS u(uid), LATERAL (
      SELECT finished_at AS at, result_body AS body, result_status_code IS NULL AS is_reported,
        coalesce('result' = ANY (unmet), false) AS was_unmet
      FROM (SELECT * FROM history WHERE schedule_uid = u.uid AND ended_at >= ${new Date(since).toISOString()}
        ORDER BY id DESC LIMIT ${LOOKED_AT}) AS h
      WHERE status = 'succeeded' ORDER BY id DESC LIMIT 1) AS newest`);
  return new Map(rows.flatMap((row) => (isAsExpected(row, asked.get(row.uid) ?? []) ? [[row.uid, row.at]] : [])));
}

/** Of a result that was cut, only its own verdict is known. */
function isAsExpected({ body, is_reported, was_unmet }: ResultRow, bounds: readonly ResultBound[]): boolean {
  if (body !== null && mayBeCut(body)) return !was_unmet;
  return (is_reported ? resultFault(bounds, body) : answerFault(bounds, Buffer.from(body ?? ''))) === null;
}
