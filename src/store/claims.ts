import { type SQL, sql } from 'drizzle-orm';
import type { Instant } from '../core/instant.ts';
import type { RunTrigger } from '../core/run.ts';
import { instants, ints, texts, uuids } from './arrays.ts';
import type { Executor } from './executor.ts';
import { runsByKey } from './by-key.ts';
import { sinceDayOf } from './open-runs.ts';
import {
  type InstantText,
  frequentRowsOf,
  rowsOf,
  scheduleIdOf,
  toInstant,
  toInstantOrNull,
} from './rows.ts';

/** A run this instance may hand off: what an attempt needs beside the definition of its version. */
export interface ClaimedRun {
  id: string;
  /** Under which id it was claimed: this process may have got another one since. */
  instanceId: string;
  scheduledFor: Instant;
  scheduleUid: string;
  scheduleVersion: number;
  /** Null: a one-off run. */
  scheduleId: string | null;
  trigger: RunTrigger;
  lane: string;
  dueAt: Instant;
  /** The number of the attempt this claim is for: with the claimant, the guard of its settlement. */
  attempt: number;
  failures: number;
  recoveries: number;
  ownPayload: string | null;
  /** Whose end it follows; its target is told how that ended. */
  parentRunId: string | null;
  /** It waited for others; its target is told how they ended. */
  hasDependencies: boolean;
  /** Others wait for it. */
  hasDependents: boolean;
  claimedAt: Instant;
  /** Of its first attempt. */
  firstClaimedAt: Instant;
  /** An attempt in doubt that the target had acknowledged, before nothing was heard of it any more. */
  wasHandedOff: boolean;
  /** Of the first attempt; null before it. */
  latenessMs: number | null;
  /** When recovery last took it over. */
  recoveredAt: Instant | null;
  /** An earlier attempt may have arrived and the target can be asked; from this moment on its "no" may be believed. */
  inDoubtUntil: Instant | null;
  /** How often it was asked about that attempt in vain. */
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
  /** Kinds of target this version can send to; runs of others are left to whoever can. */
  targetTypes: readonly string[];
  /** Of older days no run is looked for. */
  openSince: Instant;
}

/** What an integer can count on from; no run gets there by itself. */
export const MOST_ATTEMPTS = 2_000_000_000;

/** What is usual of a first attempt is null. */
interface Row {
  id: string;
  scheduled_for: InstantText;
  schedule_uid: string;
  schedule_version: number;
  schedule_id: string;
  trigger: RunTrigger;
  lane: string;
  /** Null: when it was scheduled. */
  due_at: InstantText | null;
  attempts: number;
  failures: number | null;
  recoveries: number | null;
  own_payload: string | null;
  parent_run_id: string | null;
  has_dependencies: true | null;
  has_dependents: true | null;
  claimed_at: InstantText;
  /** Null: now. */
  first_claimed_at: InstantText | null;
  was_handed_off: true | null;
  /** bigint: a string on the wire. */
  lateness_ms: string | null;
  recovered_at: InstantText | null;
  in_doubt_until: InstantText | null;
  lookups: number | null;
}

/**
 * Claims due, unclaimed runs up to the free slots, by priority and due time, and counts the attempt in the same
 * statement. Steps from lane to lane through the index, so that the backlog of a lane without slots is not read at all.
 * What is chosen is locked by then, so the update asks for its key and nothing else: asked again for pending and
 * unclaimed, which statistics call rare, the planner joins it with the whole backlog, row by row. That update is the statement itself
 * and no CTE: what locks rows must not stand beside a CTE that finds its partition as it runs (database.ts, `guarded`).
 * An instance that was declared dead claims nothing.
 */
export async function claimPendingRuns(db: Executor, request: ClaimRequest): Promise<ClaimedRun[]> {
  const { instanceId, limit, freeByLane, freePerLane, targetTypes, openSince } = request;
  const rows = await frequentRowsOf<Row>(
    db,
    sql`WITH RECURSIVE clock AS MATERIALIZED (SELECT clock_timestamp() AS now), ${lanesSince(openSince)}, free AS (
      SELECT lanes.lane, lanes.priority, coalesce(held.free, ${freePerLane}) AS free
      FROM lanes LEFT JOIN unnest(${texts([...freeByLane.keys()])}, ${ints([...freeByLane.values()])})
        AS held(lane, free) ON held.lane = lanes.lane
      WHERE ${isOfType(sql`lanes.lane`, targetTypes)} AND coalesce(held.free, ${freePerLane}) > 0
        AND EXISTS (SELECT FROM instances WHERE id = ${instanceId} AND died_at IS NULL)
    ), candidates AS MATERIALIZED (
      SELECT r.scheduled_for, r.id, r.lane, r.priority, r.due_at, free.free FROM free, LATERAL (
        SELECT scheduled_for, id, lane, priority, due_at FROM runs
        WHERE status = 'pending' AND claimed_by IS NULL AND lane = free.lane AND priority = free.priority
          AND due_at <= (SELECT now FROM clock) AND attempts < ${MOST_ATTEMPTS} AND ${sinceDayOf(sql`scheduled_for`, openSince)}
        ORDER BY due_at LIMIT least(free.free, ${limit}) FOR UPDATE SKIP LOCKED) AS r
    ), chosen AS (
      SELECT scheduled_for, id FROM (
        SELECT *, row_number() OVER (PARTITION BY lane ORDER BY priority, due_at) AS place FROM candidates) AS ranked
      WHERE place <= free ORDER BY priority, due_at LIMIT ${limit}
    )
    UPDATE runs r SET claimed_by = ${instanceId}, claimed_at = clock.now,
      first_claimed_at = coalesce(r.first_claimed_at, clock.now), attempts = r.attempts + 1,
      handoff_started_at = NULL, updated_at = clock.now
    FROM chosen, clock
    WHERE r.scheduled_for = chosen.scheduled_for AND r.id = chosen.id AND ${sinceDayOf(sql`r.scheduled_for`, openSince)}
    RETURNING r.id, r.scheduled_for, r.schedule_uid, r.schedule_version, r.schedule_id, r.trigger, r.lane,
      nullif(r.due_at, r.scheduled_for) AS due_at, r.attempts, nullif(r.failures, 0) AS failures,
      nullif(r.recoveries, 0) AS recoveries, r.own_payload, r.parent_run_id,
      nullif(r.open_dependencies IS NOT NULL, false) AS has_dependencies, nullif(r.has_dependents, false) AS has_dependents,
      r.claimed_at, nullif(r.first_claimed_at, r.claimed_at) AS first_claimed_at,
      nullif(r.handed_off_at IS NOT NULL, false) AS was_handed_off, r.lateness_ms, r.recovered_at,
      r.in_doubt_until, nullif(r.lookups, 0) AS lookups`,
  );
  return rows.map((row) => claimedRun(row, instanceId));
}

/** In how many ms the next run comes due that can be sent and that nobody has claimed; null: none is recorded. */
export async function msUntilNextDue(
  db: Executor,
  { targetTypes, openSince }: Pick<ClaimRequest, 'targetTypes' | 'openSince'>,
): Promise<number | null> {
  const [row] = await frequentRowsOf<{ ms: number | null }>(
    db,
    sql`WITH RECURSIVE clock AS MATERIALIZED (SELECT clock_timestamp() AS now), ${lanesSince(openSince)}
    SELECT (extract(epoch FROM min(next.due_at) - (SELECT now FROM clock)) * 1000)::float8 AS ms FROM lanes, LATERAL (
      SELECT due_at FROM runs WHERE status = 'pending' AND claimed_by IS NULL AND lane = lanes.lane
        AND priority = lanes.priority AND due_at > (SELECT now FROM clock)
        AND ${sinceDayOf(sql`scheduled_for`, openSince)} ORDER BY due_at LIMIT 1) AS next
    WHERE ${isOfType(sql`lanes.lane`, targetTypes)}`,
  );
  return row?.ms ?? null;
}

/** The lanes and priorities in which something waits to be claimed, one after the other through the index. */
export function lanesSince(openSince: Instant): SQL {
  return sql`lanes AS (
      (SELECT lane, priority FROM runs WHERE status = 'pending' AND claimed_by IS NULL AND ${sinceDayOf(sql`scheduled_for`, openSince)}
        ORDER BY lane, priority LIMIT 1)
      UNION ALL
      SELECT following.lane, following.priority FROM lanes, LATERAL (
        SELECT r.lane, r.priority FROM runs r
        WHERE r.status = 'pending' AND r.claimed_by IS NULL AND (r.lane, r.priority) > (lanes.lane, lanes.priority)
          AND ${sinceDayOf(sql`r.scheduled_for`, openSince)}
        ORDER BY r.lane, r.priority LIMIT 1) AS following
    )`;
}

/** In words: of types that are not known yet the server expects many, and would plan for those that are each time. */
function isOfType(lane: SQL, types: readonly string[]): SQL {
  const words = types.map((type) => `'${type.replaceAll("'", "''")}'`);
  return sql`split_part(${lane}, ' ', 1) = ANY(ARRAY[${sql.raw(words.join(', '))}]::text[])`;
}

export interface Claim {
  runId: string;
  scheduledFor: Instant;
  instanceId: string;
  attempt: number;
}

export function claimOf(run: ClaimedRun): Claim {
  return {
    runId: run.id,
    scheduledFor: run.scheduledFor,
    instanceId: run.instanceId,
    attempt: run.attempt,
  };
}

/** The name of the NOTIFY that tells instances of runs to claim that another one has left: a hint, never needed. */
export const RUNS_RETURNED = 'firelock_runs_returned';

/**
 * Hands unsent claims back, where they are still the caller's: anybody may take them at once, and is told so. Rows that others hold are
 * passed over: `held` are the ids of those.
 */
export async function returnClaimsIfMine(
  db: Executor,
  claims: readonly Claim[],
): Promise<{ returned: number; held: ReadonlySet<string> }> {
  const times = claims.map((claim) => claim.scheduledFor);
  const returned = await rowsOf<{ id: string }>(
    db,
    sql`WITH free AS MATERIALIZED (${stillClaimed(claims)} ${LOCKING_FREE})
    UPDATE runs r SET claimed_by = NULL, claimed_at = NULL, updated_at = clock_timestamp()
    FROM free WHERE ${runsByKey(sql`r`, sql`free`, times)}
    RETURNING r.id, pg_notify(${RUNS_RETURNED}, '')`,
  );
  const held = returned.length < claims.length ? await rowsOf<{ id: string }>(db, stillClaimed(claims)) : [];
  return { returned: returned.length, held: new Set(held.map((row) => row.id)) };
}

/** Runs that these claims still hold, as `r`: when they were scheduled, and their ids. */
export function stillClaimed(claims: readonly Claim[]): SQL {
  const times = claims.map((claim) => claim.scheduledFor);
  return sql`SELECT r.scheduled_for, r.id FROM unnest(${uuids(claims.map((claim) => claim.runId))}, ${instants(times)},
      ${uuids(claims.map((claim) => claim.instanceId))}, ${ints(claims.map((claim) => claim.attempt))})
      AS c(id, scheduled_for, claimed_by, attempt)
    JOIN runs r ON ${runsByKey(sql`r`, sql`c`, times)}
    WHERE CASE WHEN r.status = 'pending' THEN r.claimed_by = c.claimed_by AND r.attempts = c.attempt END`;
}

/** Of those, the ones that nobody else works on. */
export const LOCKING_FREE = sql`ORDER BY r.scheduled_for, r.id FOR UPDATE OF r SKIP LOCKED`;

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
    dueAt: toInstantOrNull(row.due_at) ?? scheduledFor,
    attempt: row.attempts,
    failures: row.failures ?? 0,
    recoveries: row.recoveries ?? 0,
    ownPayload: row.own_payload,
    parentRunId: row.parent_run_id,
    hasDependencies: row.has_dependencies ?? false,
    hasDependents: row.has_dependents ?? false,
    claimedAt,
    firstClaimedAt: toInstantOrNull(row.first_claimed_at) ?? claimedAt,
    wasHandedOff: row.was_handed_off ?? false,
    latenessMs: row.lateness_ms === null ? null : Number(row.lateness_ms),
    recoveredAt: toInstantOrNull(row.recovered_at),
    inDoubtUntil: toInstantOrNull(row.in_doubt_until),
    lookups: row.lookups ?? 0,
    confirm: false,
  };
}
