import { type SQL, sql } from 'drizzle-orm';
import type { Instant } from '../../../core/instant.ts';
import type { RunTrigger } from '../../../core/runs/run.ts';
import { ints, texts } from '../../../postgres/sql/arrays.ts';
import { anyUid } from '../../../postgres/sql/by-key.ts';
import type { Executor } from '../../../postgres/executor.ts';
import { isPull } from '../../queues/queue-lanes.ts';
import {
  type InstantText,
  queryPrepared,
  scheduleIdOf,
  toInstant,
  toInstantOrNull,
} from '../../../postgres/sql/rows.ts';

/** A run this instance may hand off: what an attempt needs beside the definition of its version. */
export interface ClaimedRun {
  id: string;
  /** The id under which it was claimed: this process may have got another one since. */
  instanceId: string;
  scheduledFor: Instant;
  scheduleUid: string;
  scheduleVersion: number;
  /** Null: a one-off run. */
  scheduleId: string | null;
  trigger: RunTrigger;
  lane: string;
  /** Its rank: the smaller, the sooner. */
  priority: number;
  dueAt: Instant;
  /** The number of the attempt this claim is for: with the claimant, the guard of its settlement. */
  attempt: number;
  failures: number;
  recoveries: number;
  ownPayload: string | null;
  /** The run whose end it follows; its target gets how that ended. */
  parentRunId: string | null;
  /** It waited for other runs; its target gets how they ended. */
  hasDependencies: boolean;
  claimedAt: Instant;
  /** Of its first attempt. */
  firstClaimedAt: Instant;
  /** The target had acknowledged the uncertain attempt, and then nothing was heard of it any more. */
  wasHandedOff: boolean;
  /** Of the first attempt; null before it. */
  latenessMs: number | null;
  /** When recovery last took it over. */
  recoveredAt: Instant | null;
  /** An earlier attempt may have arrived and the target can be asked; from this moment on its "no" is believed. */
  lookupAfter: Instant | null;
  /** How often it was asked about that attempt without a clear answer. */
  lookups: number;
  /** Whether the claim has to be confirmed before it is acted on, however fresh it is. */
  confirm: boolean;
}

export interface ClaimRequest {
  instanceId: string;
  /** Free slots in all, of each lane that holds some, and of every other lane. */
  limit: number;
  freeByLane: ReadonlyMap<string, number>;
  freePerLane: number;
  /** Kinds of target this version can send to; runs of others are left to instances that can. */
  targetTypes: readonly string[];
}

/** What an integer can count on from; no run gets there by itself. */
export const MAX_ATTEMPTS = 2_000_000_000;

/** What is usual of a first attempt is null. */
interface Row {
  id: string;
  scheduled_for: InstantText;
  schedule_uid: string;
  schedule_version: number;
  schedule_id: string;
  trigger: RunTrigger;
  lane: string;
  priority: number;
  /** Null: when it was scheduled. */
  due_at: InstantText | null;
  attempts: number;
  failures: number | null;
  recoveries: number | null;
  own_payload: string | null;
  parent_run_id: string | null;
  has_dependencies: true | null;
  claimed_at: InstantText;
  /** Null: now. */
  first_claimed_at: InstantText | null;
  was_handed_off: true | null;
  /** bigint: a string on the wire. */
  lateness_ms: string | null;
  recovered_at: InstantText | null;
  lookup_after: InstantText | null;
  lookups: number | null;
}

/**
 * Claims ready runs up to the free slots, by priority and due time, and counts the attempt in the same statement. Steps from lane to
 * lane through the index of what is ready, so that it reads neither the backlog of a lane without slots nor what is due next week. An
 * instance that was declared dead claims nothing.
 */
export async function claimReadyRuns(db: Executor, request: ClaimRequest): Promise<ClaimedRun[]> {
  const { instanceId, limit, freeByLane, freePerLane, targetTypes } = request;
  const rows = await queryPrepared<Row>(
    db,
    sql`WITH RECURSIVE clock AS MATERIALIZED (SELECT clock_timestamp() AS now), ${READY_LANES}, free AS (
      SELECT lanes.lane, lanes.priority, coalesce(held.free, ${freePerLane}) AS free
      FROM lanes LEFT JOIN unnest(${texts([...freeByLane.keys()])}, ${ints([...freeByLane.values()])})
        AS held(lane, free) ON held.lane = lanes.lane
      WHERE ${isOfType(sql`lanes.lane`, targetTypes)} AND coalesce(held.free, ${freePerLane}) > 0
        AND EXISTS (SELECT FROM instances WHERE id = ${instanceId} AND died_at IS NULL)
    ), candidates AS MATERIALIZED (
      SELECT r.id, r.lane, r.priority, r.due_at, free.free FROM free, LATERAL (
        SELECT id, lane, priority, due_at FROM runs
        WHERE status = 'pending' AND claimed_by IS NULL AND ready AND lane = free.lane AND priority = free.priority
          AND attempts < ${MAX_ATTEMPTS}
        ORDER BY due_at LIMIT least(free.free, ${limit}) FOR UPDATE SKIP LOCKED) AS r
    ), chosen AS (
      SELECT id FROM (
        SELECT *, row_number() OVER (PARTITION BY lane ORDER BY priority, due_at) AS place FROM candidates) AS ranked
      WHERE place <= free ORDER BY priority, due_at LIMIT ${limit}
    )
    UPDATE runs r SET claimed_by = ${instanceId}, claimed_at = clock.now,
      first_claimed_at = coalesce(r.first_claimed_at, clock.now), attempts = r.attempts + 1,
      handoff_started_at = NULL, updated_at = clock.now
    FROM chosen, clock WHERE r.id = chosen.id AND ${anyUid(sql`chosen.id`)}
    RETURNING r.id, r.scheduled_for, r.schedule_uid, r.schedule_version, r.schedule_id, r.trigger, r.lane, r.priority,
      nullif(r.due_at, r.scheduled_for) AS due_at, r.attempts, nullif(r.failures, 0) AS failures,
      nullif(r.recoveries, 0) AS recoveries, r.own_payload, r.parent_run_id,
      nullif(r.open_dependencies IS NOT NULL, false) AS has_dependencies,
      r.claimed_at, nullif(r.first_claimed_at, r.claimed_at) AS first_claimed_at,
      nullif(r.handed_off_at IS NOT NULL, false) AS was_handed_off, r.lateness_ms, r.recovered_at,
      r.lookup_after, nullif(r.lookups, 0) AS lookups`,
  );
  return rows.map((row) => claimedRun(row, instanceId));
}

interface Promoted {
  /** Runs that are ready now, and whether workers may pull some of them. */
  count: number;
  toPull: boolean;
  /** In how many ms the next run comes due; null: none is recorded. */
  msUntilNextDue: number | null;
}

/**
 * Makes runs ready that have come due since they were recorded: retries, one-off runs with a `runAt`, jittered fires. Claims read only
 * ready runs, so that a claim costs the same however much is recorded for next week.
 *
 * It takes an array of ids: the planner takes a third of all runs for due, and would read all of them to join these few.
 */
export async function promoteDueRuns(db: Executor, limit: number): Promise<Promoted> {
  const [row] = await queryPrepared<{ count: number; to_pull: boolean; ms: number | null }>(
    db,
    sql`WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now), due AS MATERIALIZED (
      SELECT id FROM runs
      WHERE status = 'pending' AND claimed_by IS NULL AND NOT ready AND due_at <= (SELECT now FROM clock)
      ORDER BY due_at LIMIT ${limit} FOR UPDATE SKIP LOCKED
    ), promoted AS (
      UPDATE runs r SET ready = true WHERE r.id = ANY (ARRAY(SELECT id FROM due)) RETURNING r.lane
    )
    SELECT (SELECT count(*) FROM promoted)::int AS count,
      (SELECT coalesce(bool_or(${isPull(sql`lane`)}), false) FROM promoted) AS to_pull,
      (SELECT extract(epoch FROM min(due_at) - (SELECT now FROM clock)) * 1000 FROM runs
        WHERE status = 'pending' AND claimed_by IS NULL AND NOT ready AND due_at > (SELECT now FROM clock))::float8 AS ms`,
  );
  return { count: row?.count ?? 0, toPull: row?.to_pull ?? false, msUntilNextDue: row?.ms ?? null };
}

/** The lanes and priorities in which something is ready to be claimed, one after the other through the index. */
export const READY_LANES = sql`lanes AS (
      (SELECT lane, priority FROM runs WHERE status = 'pending' AND claimed_by IS NULL AND ready
        ORDER BY lane, priority LIMIT 1)
      UNION ALL
      SELECT following.lane, following.priority FROM lanes, LATERAL (
        SELECT r.lane, r.priority FROM runs r
        WHERE r.status = 'pending' AND r.claimed_by IS NULL AND r.ready AND (r.lane, r.priority) > (lanes.lane, lanes.priority)
        ORDER BY r.lane, r.priority LIMIT 1) AS following
    )`;

/** Literals, not parameters: with unknown types the server expects many, and would plan anew each time. */
function isOfType(lane: SQL, types: readonly string[]): SQL {
  const words = types.map((type) => `'${type.replaceAll("'", "''")}'`);
  return sql`split_part(${lane}, ' ', 1) = ANY(ARRAY[${sql.raw(words.join(', '))}]::text[])`;
}

function claimedRun(row: Row, instanceId: string): ClaimedRun {
  const scheduledFor = toInstant(row.scheduled_for);
  const claimedAt = toInstant(row.claimed_at);
  return {
    id: row.id,
    instanceId,
    scheduledFor,
    scheduleUid: row.schedule_uid,
    scheduleVersion: row.schedule_version,
    scheduleId: scheduleIdOf(row.schedule_id),
    trigger: row.trigger,
    lane: row.lane,
    priority: row.priority,
    dueAt: toInstantOrNull(row.due_at) ?? scheduledFor,
    attempt: row.attempts,
    failures: row.failures ?? 0,
    recoveries: row.recoveries ?? 0,
    ownPayload: row.own_payload,
    parentRunId: row.parent_run_id,
    hasDependencies: row.has_dependencies ?? false,
    claimedAt,
    firstClaimedAt: toInstantOrNull(row.first_claimed_at) ?? claimedAt,
    wasHandedOff: row.was_handed_off ?? false,
    latenessMs: row.lateness_ms === null ? null : Number(row.lateness_ms),
    recoveredAt: toInstantOrNull(row.recovered_at),
    lookupAfter: toInstantOrNull(row.lookup_after),
    lookups: row.lookups ?? 0,
    confirm: false,
  };
}
