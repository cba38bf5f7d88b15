import { type SQL, sql } from 'drizzle-orm';
import type { Executor } from '../../../postgres/executor.ts';
import { uuids } from '../../../postgres/sql/arrays.ts';
import { onlyColumnOf, queryPrepared } from '../../../postgres/sql/rows.ts';
import { MAY_BEGIN } from '../begin-by.ts';
import { isPull } from '../statement-parts.ts';
import { type ClaimedRow, type ClaimedRun, claimedRun } from './claimed-run.ts';
import {
  CLAIMED_COLUMNS,
  type ClaimRequest,
  freeByLane,
  isOfNotifier,
  MAX_ATTEMPTS,
  mayClaim,
  setClaimed,
} from './claims.ts';

interface DueRuns {
  /** Those that are claimed. */
  claimed: ClaimedRun[];
  /** How many had come due: claimed, or only ready now. */
  count: number;
  /** How many of these there is no room for, or may not be claimed by this instance now. */
  blocked: number;
  /** Whether workers may pull some of them. */
  toPull: boolean;
  /** Whether some of them are messages of notifiers, which another dispatcher claims. */
  toNotify: boolean;
  /** In how many ms the next run comes due; null: none is recorded. */
  msUntilNextDue: number | null;
}

interface DueRequest extends ClaimRequest {
  atMost: number;
}

/** One row holds the values of the whole batch, every other row is one run. Columns of the other kind are null. */
type Row = (ClaimedRow & { head: null }) | { id: null; head: Head };

interface Head {
  count: number;
  blocked: number;
  to_pull: boolean;
  to_notify: boolean;
  ms: number | null;
}

/**
 * Takes at most so many runs that have come due since they were recorded: retries, one-off runs with a `runAt`, jittered fires. Those of a
 * lane are claimed at once if there is room for all of them, and none of the lane waits already. The others become ready: claims read
 * only ready runs, so that a claim costs the same however much is recorded for next week. Runs with a limit become ready by admission
 * instead (store/limits/limits.ts).
 *
 * Whether a run of the lane is ready is asked as a value, in the order of its index: as an EXISTS, the server would read all ready runs to
 * answer it, where its statistics know of few. The statement takes arrays of ids: the planner takes a third of all runs for due, and would
 * read all of them to join these few.
 */
export async function claimDueRuns(db: Executor, request: DueRequest): Promise<DueRuns> {
  const { instanceId, limit, freePerLane } = request;
  const rows = await queryPrepared<Row>(db)(sql`-- claimDueRuns
    WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now), due AS MATERIALIZED (${dueRuns(request)}), lanes AS MATERIALIZED (
      SELECT of_due.lane, of_due.count, coalesce(lane_room.free, ${freePerLane}) AS free,
        ${mayClaim(sql`of_due.lane`, request)} AND of_due.most_attempts < ${MAX_ATTEMPTS}
          AND (SELECT count(*) FROM due) <= ${limit} AS may_claim,
        (SELECT true FROM runs r WHERE r.status = 'pending' AND r.claimed_by IS NULL AND r.ready AND r.lane = of_due.lane
          ORDER BY r.lane, r.priority LIMIT 1) IS NOT NULL AS has_ready
      FROM (SELECT lane, count(*)::int AS count, max(attempts) AS most_attempts FROM due GROUP BY lane) AS of_due
        LEFT JOIN ${freeByLane(request)} AS lane_room(lane, free) ON lane_room.lane = of_due.lane
    ), open AS MATERIALIZED (
      SELECT lane FROM lanes WHERE may_claim AND count <= free AND NOT has_ready
    ), promoted AS (
      UPDATE runs r SET ready = true
      WHERE r.id = ANY (ARRAY(SELECT id FROM due WHERE lane NOT IN (SELECT lane FROM open))) RETURNING r.lane
    ), claimed AS (
      UPDATE runs r SET ready = true, ${setClaimed(instanceId)} FROM clock
      WHERE r.id = ANY (ARRAY(SELECT id FROM due WHERE lane IN (SELECT lane FROM open))) RETURNING ${CLAIMED_COLUMNS}
    )
    SELECT row_to_json(head) AS head, claimed.* FROM (
      SELECT (SELECT count(*) FROM due)::int AS count,
        (SELECT coalesce(sum(count), 0) FROM lanes WHERE count > free OR NOT may_claim)::int AS blocked,
        made_ready.*,
        (SELECT extract(epoch FROM min(due_at) - (SELECT now FROM clock)) * 1000 FROM runs
          WHERE status = 'pending' AND claimed_by IS NULL AND NOT ready AND limit_id IS NULL AND NOT observed
            AND due_at > (SELECT now FROM clock))::float8 AS ms
      FROM (SELECT coalesce(bool_or(${isPull(sql`lane`)}), false) AS to_pull,
        coalesce(bool_or(${isOfNotifier(sql`lane`)}), false) AS to_notify FROM promoted) AS made_ready
    ) AS head FULL JOIN claimed ON false`);
  return dueIn(rows, instanceId);
}

function dueIn(rows: readonly Row[], instanceId: string): DueRuns {
  const head = rows.find(({ id }) => id === null)?.head;
  if (!head) throw new Error('the statement that claims due runs did not answer');
  return {
    claimed: rows.filter((row) => row.id !== null).map((row) => claimedRun(row, instanceId)),
    count: head.count,
    blocked: head.blocked,
    toPull: head.to_pull,
    toNotify: head.to_notify,
    msUntilNextDue: head.ms,
  };
}

/** The runs that `claimDueRuns` would take now. */
export async function findDue(db: Executor, request: DueRequest): Promise<string[]> {
  return onlyColumnOf<string>(db)(sql`-- findDue
    WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now), due AS MATERIALIZED (${dueRuns(request)})
    SELECT id FROM due`);
}

function dueRuns({ atMost, besides = [] }: DueRequest): SQL {
  return sql`SELECT id, lane, attempts FROM runs
      WHERE status = 'pending' AND claimed_by IS NULL AND NOT ready AND limit_id IS NULL AND NOT observed
        AND due_at <= (SELECT now FROM clock) AND ${MAY_BEGIN} AND id <> ALL (${uuids(besides)})
      ORDER BY due_at LIMIT ${atMost} FOR UPDATE SKIP LOCKED`;
}
