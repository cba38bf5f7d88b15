import { type SQL, sql } from 'drizzle-orm';
import { laneOfMessages } from '../../../core/alerts/notifier.ts';
import type { Executor, Transaction } from '../../../postgres/executor.ts';
import { anyUid, ints, texts, uuids } from '../../../postgres/sql/arrays.ts';
import { onlyColumnOf, queryPrepared, unusual } from '../../../postgres/sql/rows.ts';
import { noHandoffs } from '../../instances/installation-row.ts';
import { MAY_BEGIN } from '../begin-by.ts';
import { IS_TO_BEGIN } from '../bounds.ts';
import { type ClaimedRow, type ClaimedRun, type UnusualOfRun, claimedRun } from './claimed-run.ts';

export interface ClaimRequest {
  instanceId: string;
  /** Free slots in all, of each lane that has taken some, and of every other lane. */
  limit: number;
  freeByLane: ReadonlyMap<string, number>;
  freePerLane: number;
  /** Kinds of target this version can send to; runs of others are left to instances that can. */
  targetTypes: readonly string[];
  /** Messages of notifiers and nothing else, whatever they are sent to: no maintenance holds these. Otherwise none of them. */
  messages?: boolean;
  /** Runs whose claim the database has refused: they are left out. */
  besides?: readonly string[];
}

/** In a request: nothing is to be claimed. */
export const NO_ROOM = { limit: 0, freeByLane: new Map<string, number>(), freePerLane: 0 };

/** What an integer can count on from; no run gets there by itself. */
export const MAX_ATTEMPTS = 2_000_000_000;

/**
 * Claims ready runs up to the free slots, by priority and due time, and counts the attempt in the same statement. Steps from lane to
 * lane through the index of what is ready, so that it reads neither the backlog of a lane without slots nor what is due next week. It
 * decides without locks how many runs of each lane it takes, and locks so many; if others have locked some, it takes those behind them.
 * An instance that was declared dead claims nothing, and none claims what maintenance holds.
 */
export async function claimReadyRuns(db: Executor, request: ClaimRequest): Promise<ClaimedRun[]> {
  const { instanceId } = request;
  const rows = await queryPrepared<ClaimedRow>(db)(sql`-- claimReadyRuns
    ${chosenReady(request)}
    UPDATE runs r SET ${setClaimed(instanceId)} FROM chosen, clock WHERE r.id = chosen.id AND ${anyUid(sql`chosen.id`)}
    RETURNING ${CLAIMED_COLUMNS}`);
  return rows.map((row) => claimedRun(row, instanceId));
}

/** The runs that `claimReadyRuns` would claim now. */
export async function findClaimable(db: Executor, request: ClaimRequest): Promise<string[]> {
  return onlyColumnOf<string>(db)(sql`-- findClaimable
    ${chosenReady(request)} SELECT id FROM chosen`);
}

/** Claims these, as far as they may be claimed by anyone: for a transaction that is rolled back, to find out which the database refuses. */
export async function tryToClaim(tx: Transaction, instanceId: string, ids: readonly string[]): Promise<void> {
  await tx.execute(sql`-- tryToClaim
    WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now), chosen AS MATERIALIZED (
      SELECT id FROM runs WHERE id = ANY (${uuids(ids)}) AND status = 'pending' AND claimed_by IS NULL FOR UPDATE SKIP LOCKED)
    UPDATE runs r SET ready = true, ${setClaimed(instanceId)} FROM chosen, clock WHERE r.id = chosen.id`);
}

function chosenReady(request: ClaimRequest): SQL {
  const { messages = false, besides = [] } = request;
  const readyLanes = messages ? READY_LANES_OF_NOTIFIERS : READY_LANES;
  return sql`WITH RECURSIVE clock AS MATERIALIZED (SELECT clock_timestamp() AS now), ${readyLanes}, ${sharesByPriority(request)}, chosen AS MATERIALIZED (
      SELECT r.id FROM shares, LATERAL (
        SELECT id FROM runs WHERE ${isReadyIn(sql`shares`, besides)} ORDER BY due_at LIMIT shares.count FOR UPDATE SKIP LOCKED) AS r
    )`;
}

/** How many runs of each lane and priority are to be claimed. */
function sharesByPriority(request: ClaimRequest): SQL {
  const { limit, freePerLane, besides = [] } = request;
  return sql`free AS (
      SELECT lanes.lane, lanes.priority, coalesce(lane_room.free, ${freePerLane}) AS free
      FROM lanes LEFT JOIN ${freeByLane(request)} AS lane_room(lane, free) ON lane_room.lane = lanes.lane
      WHERE coalesce(lane_room.free, ${freePerLane}) > 0 AND ${mayClaim(sql`lanes.lane`, request)}
    ), candidates AS (
      SELECT r.lane, r.priority, r.due_at, free.free FROM (SELECT *, count(*) OVER () AS lanes FROM free) AS free, LATERAL (
        SELECT lane, priority, due_at FROM runs WHERE ${isReadyIn(sql`free`, besides)}
        ORDER BY due_at LIMIT least(free.free, ${limit}, 1 + ${TIMES_EVEN_SHARE * limit} / free.lanes)) AS r
    ), shares AS MATERIALIZED (
      SELECT lane, priority, count(*) AS count FROM (
        SELECT lane, priority FROM (
          SELECT *, row_number() OVER (PARTITION BY lane ORDER BY priority, due_at) AS place FROM candidates) AS ranked
        WHERE place <= free ORDER BY priority, due_at LIMIT ${limit}) AS first
      GROUP BY lane, priority
    )`;
}

/** Of what one statement claims, a lane may have at most so many times what each would have if all had the same. */
const TIMES_EVEN_SHARE = 4;

/** Of the lane and priority of a row of that name. */
function isReadyIn(of: SQL, besides: readonly string[]): SQL {
  return sql`status = 'pending' AND claimed_by IS NULL AND ready AND lane = ${of}.lane AND priority = ${of}.priority
          AND attempts < ${MAX_ATTEMPTS} AND id <> ALL (${uuids(besides)}) AND ${MAY_BEGIN}`;
}

/** A claim of `r` is the beginning of an attempt. */
export function setClaimed(instanceId: string): SQL {
  return sql`claimed_by = ${instanceId}, claimed_at = clock.now, first_claimed_at = coalesce(r.first_claimed_at, clock.now),
      attempts = r.attempts + 1, handoff_started_at = NULL, updated_at = clock.now`;
}

/** Schedules that were deleted, and of which runs are still open: none of those is handed off. Usually an empty table, read once. */
export const BEING_DELETED = sql`ARRAY(SELECT schedule_uid FROM backlogs WHERE kind = 'deleted')`;

/** Of the version of `r`. */
const EDITION = sql`(SELECT edition FROM schedule_versions WHERE schedule_uid = r.schedule_uid AND version = r.schedule_version)`;

/** A ClaimedRow of `r`. */
export const CLAIMED_COLUMNS = sql`r.id, r.scheduled_for, r.schedule_uid, r.schedule_version,
      ${EDITION} AS edition, r.schedule_id, r.trigger, r.lane, r.priority, r.attempts, r.own_payload, r.claimed_at, ${unusual(
        {
          limit_id: sql`r.limit_id`,
          due_at: sql`nullif(r.due_at, r.scheduled_for)`,
          failures: sql`nullif(r.failures, 0)`,
          recoveries: sql`nullif(r.recoveries, 0)`,
          parent_run_id: sql`r.parent_run_id`,
          notifier_id: sql`r.notifier_id`,
          has_dependencies: sql`nullif(r.open_dependencies IS NOT NULL, false)`,
          first_claimed_at: sql`nullif(r.first_claimed_at, r.claimed_at)`,
          was_handed_off: sql`nullif(r.handed_off_at IS NOT NULL, false)`,
          lateness_ms: sql`r.lateness_ms`,
          recovered_at: sql`r.recovered_at`,
          in_doubt_until: sql`r.in_doubt_until`,
          lookups: sql`nullif(r.lookups, 0)`,
          to_begin: IS_TO_BEGIN,
          of_deleted: sql`nullif(r.schedule_uid = ANY (${BEING_DELETED}), false)`,
        } satisfies Record<keyof UnusualOfRun, SQL>,
      )}`;

/** Whether the instance is alive, runs of that lane are such as it asks for, and no maintenance holds them. */
export function mayClaim(
  lane: SQL,
  { instanceId, targetTypes, messages = false }: Pick<ClaimRequest, 'instanceId' | 'targetTypes' | 'messages'>,
): SQL {
  const lives = sql`EXISTS (SELECT FROM instances WHERE id = ${instanceId} AND died_at IS NULL)`;
  return messages
    ? sql`${isOfNotifier(lane)} AND ${lives}`
    : sql`${isOfType(lane, targetTypes)} AND ${lives} AND NOT ${noHandoffs}`;
}

/** Rows of (lane, free slots). */
export function freeByLane(request: Pick<ClaimRequest, 'freeByLane'>): SQL {
  return sql`unnest(${texts([...request.freeByLane.keys()])}, ${ints([...request.freeByLane.values()])})`;
}

/** The lanes and priorities in which something is ready to be claimed, one after the other through the index. */
export const READY_LANES = readyLanes(sql`true`, sql`true`);

const NOTIFIERS = sql.raw(`'${laneOfMessages('')}'`);

/** In that lane are messages of a notifier. */
export function isOfNotifier(lane: SQL): SQL {
  return sql`starts_with(${lane}, ${NOTIFIERS})`;
}

/** The same of notifiers alone, whose lanes follow each other in the index. */
const READY_LANES_OF_NOTIFIERS = readyLanes(sql`lane >= rtrim(${NOTIFIERS})`, isOfNotifier(sql`lanes.lane`));

/** Beginning with the first lane of which `first` holds, and going on from a lane of which `goesOn` holds. */
function readyLanes(first: SQL, goesOn: SQL): SQL {
  return sql`lanes AS (
      (SELECT lane, priority FROM runs WHERE status = 'pending' AND claimed_by IS NULL AND ready AND ${first}
        ORDER BY lane, priority LIMIT 1)
      UNION ALL
      SELECT following.lane, following.priority FROM lanes, LATERAL (
        SELECT r.lane, r.priority FROM runs r
        WHERE r.status = 'pending' AND r.claimed_by IS NULL AND r.ready AND (r.lane, r.priority) > (lanes.lane, lanes.priority)
        ORDER BY r.lane, r.priority LIMIT 1) AS following WHERE ${goesOn}
    )`;
}

function isOfType(lane: SQL, types: readonly string[]): SQL {
  return sql`split_part(${lane}, ' ', 1) = ANY (${texts(types)})`;
}
