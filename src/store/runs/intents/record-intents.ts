import { type SQL, sql } from 'drizzle-orm';
import { fromMs, ints, milliseconds, texts, uuids, anyUid } from '../../../postgres/sql/arrays.ts';
import { type ScopeShares, NO_SHARES } from '../../../core/access/scope.ts';
import { isFollowed } from '../../effects/followers.ts';
import { isUniqueViolation } from '../../../postgres/errors.ts';
import type { Executor } from '../../../postgres/executor.ts';
import {
  type InstantText,
  idsUnlessAll,
  isAmong,
  LOCK_LIMIT,
  queryPrepared,
  toInstant,
} from '../../../postgres/sql/rows.ts';
import { BOUND_COLUMNS, recordedBounds } from '../bounds.ts';
import { OVERLAPS } from '../../../core/schedules/schedule.ts';
import { AS_OBSERVED, isObserved, isReady, OBSERVED_COLUMNS, OBSERVED_VALUES, stepTo } from '../statement-parts.ts';
import { EXPIRY_COLUMNS, beginBy, recordedExpiry } from '../begin-by.ts';
import { isIdleUnderLock } from '../guarded-runs.ts';
import { laneOfRun } from '../../scopes/in-scope.ts';
import {
  type Advance,
  type Intent,
  type Recorded,
  byPlace,
  columnsOf,
  errorOfSkip,
  FIRE_COLUMNS,
  furtherFires,
  occurrenceApart,
  plannedApart,
  USUAL_TRIGGER,
  wasMissed,
} from './intent.ts';

/**
 * Records fires and moves their schedules on, in one statement: all of a schedule or nothing of it. A lock that was lost meanwhile (a
 * freeze longer than its TTL, an edit) writes nothing. A fire that is skipped is recorded as ended, in history. Where runs of a schedule
 * must not overlap, one fire starts where none of its runs is open; else they are recorded as waiting, for judgeOverlapsUnderLock in the
 * same transaction. Callers sort by uid: rows are locked in one order everywhere.
 *
 * `alone`: outside of a transaction. The cursor moves on with the fires, so a run exists already only if another program has set a cursor
 * back. So the first try does not check for existing runs, which saves a sixth of the statement. If there is one, the unique index refuses
 * the whole statement, and the second try leaves it out. It fails if a schedule's row stays locked for long (isLockedByOthers).
 */
export async function recordIntentsIfLocked(
  db: Executor,
  instanceId: string,
  advances: readonly Advance[],
  intents: readonly Intent[],
  { alone, scopeShares = NO_SHARES }: { alone: boolean; scopeShares?: ScopeShares },
): Promise<Recorded> {
  const write = (onConflict: SQL) =>
    record(db, instanceId, advances, intents, { alone, lane: laneOfRun(scopeShares), onConflict });
  if (!alone || intents.length > advances.length) return write(LEAVING_OUT);
  try {
    return await write(sql``);
  } catch (error) {
    if (!isUniqueViolation(error)) throw error;
    return write(LEAVING_OUT);
  }
}

const READY = isReady({ dueAt: sql`f.due_at`, limitId: sql`f.limit_id` }, sql`f.now`);

const IS_UNGUARDED = sql`f.overlap = 'allow'`;
/** An overlap that only a later version knows is left to that version. */
const STARTS = sql`(${IS_UNGUARDED} OR f.overlap = ANY (${texts(OVERLAPS)}) AND ${isIdleUnderLock(sql`f.uid`)})`;

/** Those that are there. */
const LEAVING_OUT = sql`ON CONFLICT DO NOTHING`;

const NONE = { names: sql``, values: sql`` };
const nothingOf: (row: SQL) => SQL = () => sql``;
const OF_UNBOUNDED = {
  ...NONE,
  of: nothingOf,
  fields: sql``,
  from: (rows: SQL) => rows,
  lane: sql`f.lane`,
  limitId: sql`f.limit_id`,
  overlap: sql`f.overlap`,
  starts: (starts: SQL) => starts,
  ready: READY,
  mayBegin: sql``,
  expired: sql`NULL`,
  late: NONE,
};
const EXPIRY = { names: sql`, ${EXPIRY_COLUMNS}`, values: sql`, ${recordedExpiry(sql`f`, sql`f.due_at`)}` };
const EXPIRED = sql`coalesce(${beginBy(sql`f`, sql`f.due_at`)} <= f.now, false)`;
const OF_BOUNDED = {
  ...OF_UNBOUNDED,
  fields: sql`, f.start_within_seconds, f.finish_within_seconds, f.expires_after_seconds`,
  of: (row: SQL) => sql`, ${row}.start_within_seconds, ${row}.finish_within_seconds, ${row}.expires_after_seconds`,
  names: sql`, ${BOUND_COLUMNS}${EXPIRY.names}`,
  values: sql`, ${recordedBounds(sql`f`, sql`f.due_at`)}${EXPIRY.values}`,
  mayBegin: sql` AND NOT ${EXPIRED}`,
  expired: sql`(SELECT string_agg(f.id::text, ',') FROM fires f WHERE f.claimed AND ${EXPIRED})`,
  late: EXPIRY,
};
/** Where some of the batch may be observed: each run is decided here, by its schedule's row as the guard found it. */
const OF_OBSERVING = {
  ...OF_BOUNDED,
  of: (row: SQL) => sql`${OF_BOUNDED.of(row)}, ${row}.report_seconds, ${row}.observe_until`,
  fields: sql`, f.start_within_seconds, f.finish_within_seconds, ${AS_OBSERVED.expiresAfter} AS expires_after_seconds,
        f.report_seconds, f.observed`,
  from: (rows: SQL) =>
    sql`(SELECT f.*, f.skipped IS NULL AND ${isObserved(sql`f`, fromMs(sql`f.scheduled_ms`))} AS observed FROM ${rows} AS f)`,
  ...{ lane: AS_OBSERVED.lane, limitId: AS_OBSERVED.limitId, overlap: AS_OBSERVED.overlap },
  starts: (starts: SQL) => sql`(f.observed OR ${starts})`,
  ready: sql`NOT f.observed AND ${READY}`,
  names: sql`${OF_BOUNDED.names}, ${OBSERVED_COLUMNS}`,
  values: sql`${OF_BOUNDED.values}, ${OBSERVED_VALUES}`,
};

function costsOf(advances: readonly Advance[]): typeof OF_UNBOUNDED {
  if (advances.some(({ observes }) => observes === true)) return OF_OBSERVING;
  return advances.some(({ isBounded }) => isBounded === true) ? OF_BOUNDED : OF_UNBOUNDED;
}

interface RecordedRow {
  now: InstantText;
  advanced: number;
  inserted: string | null;
  waiting: string | null;
  expired: string | null;
  effects: number;
}

/**
 * The guard is a CASE, which hides it from the planner. Statistics say that locked schedules are rare: with a plain condition the
 * planner would compare each with each. The batch leaves out usual values: a fire is due when it is scheduled, stands for itself
 * alone, and is on time.
 */
// oxlint-disable-next-line max-lines-per-function -- one statement
async function record(
  db: Executor,
  instanceId: string,
  advances: readonly Advance[],
  intents: readonly Intent[],
  { alone, lane, onConflict }: { alone: boolean; lane: SQL; onConflict: SQL },
): Promise<Recorded> {
  const { firsts, further } = byPlace(advances, intents);
  const isAnySkipped = intents.some(({ skipped }) => skipped !== null);
  const isAnyMissed = intents.some(wasMissed);
  const starts = alone || further ? IS_UNGUARDED : STARTS;
  // Other batches are spared what bounds, and observing, cost.
  const bounds = costsOf(advances);
  const claims = sql`(f.claimed${alone ? sql`` : sql` AND f.starts`}${bounds.mayBegin})`;
  const [row] = await queryPrepared<RecordedRow>(db)(sql`-- recordIntentsIfLocked
    WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now${alone ? sql`, ${LOCK_LIMIT}` : sql``}),
    advanced AS (
      UPDATE schedules s SET next_occurrence_at = ${fromMs(sql`coalesce(a.next_occurrence_ms, a.next_fire_ms)`)},
        next_fire_at = ${fromMs(sql`a.next_fire_ms`)},
        planned_through = greatest(s.planned_through, ${fromMs(sql`coalesce(a.planned_ms, a.last_fire_ms)`)}),
        last_fire_at = coalesce(${fromMs(sql`a.last_fire_ms`)}, s.last_fire_at),
        error = NULL, plan_failures = 0, locked_by = NULL, locked_at = NULL
      FROM clock, unnest(${uuids(advances.map((advance) => advance.uid))}, ${ints(advances.map((advance) => advance.version))},
        ${milliseconds(advances.map((advance) => advance.lockedAt))}, ${milliseconds(advances.map(occurrenceApart))},
        ${milliseconds(advances.map((advance) => advance.nextFireAt))}, ${milliseconds(advances.map(plannedApart))},
        ${milliseconds(advances.map((advance) => advance.lastFireAt))}, ${columnsOf(firsts)})
        WITH ORDINALITY AS a(uid, version, locked_ms, next_occurrence_ms, next_fire_ms, planned_ms, last_fire_ms,
          ${FIRE_COLUMNS}, place)
      WHERE s.uid = a.uid AND ${anyUid(sql`a.uid`)}
        AND CASE WHEN s.locked_by = ${instanceId} THEN s.locked_at = ${fromMs(sql`a.locked_ms`)} AND s.version = a.version END
      RETURNING s.uid, s.id AS schedule_id, s.version, ${lane}, s.priority, s.limit_id, s.overlap, s.outcome_watched${bounds.of(sql`s`)}, clock.now, a.place, ${FIRE_COLUMNS}
    )${further ? furtherFires(further, bounds.of(sql`s`)) : sql``}, fires AS ${isAnySkipped || isAnyMissed || !alone ? sql`MATERIALIZED` : sql`NOT MATERIALIZED`} (
      SELECT f.uid, f.schedule_id, f.version, ${bounds.lane} AS lane, f.priority, ${bounds.limitId} AS limit_id, ${bounds.overlap} AS overlap,
        f.outcome_watched${bounds.fields}, f.now, f.fire_id AS id,
        ${fromMs(sql`f.scheduled_ms`)} AS scheduled_for, coalesce(f.trigger, ${USUAL_TRIGGER}) AS trigger,
        ${fromMs(sql`coalesce(f.due_ms, f.scheduled_ms)`)} AS due_at, f.skipped, coalesce(f.coalesced, 0) AS coalesced,
        ${fromMs(sql`f.coalesced_from_ms`)} AS coalesced_from, f.claimed, ${bounds.starts(starts)} AS starts
      FROM ${bounds.from(further ? sql`(TABLE advanced UNION ALL TABLE further)` : sql`advanced`)} AS f WHERE f.fire_id IS NOT NULL
    ), recorded AS (
      INSERT INTO runs (id, scheduled_for, schedule_uid, schedule_version, schedule_id, trigger, status, lane, priority, due_at,
        limit_id, ready, attempts, coalesced, coalesced_from, claimed_by, claimed_at, first_claimed_at, overlap_guarded,
        outcome_watched${bounds.names}, created_at, updated_at)
      SELECT f.id, f.scheduled_for, f.uid, f.version, f.schedule_id, f.trigger,
        CASE WHEN f.starts THEN ${sql.raw(stepTo(null, 'pending', 'recordIntentsIfLocked'))}
          ELSE ${sql.raw(stepTo(null, 'waiting', 'recordIntentsIfLocked'))} END, f.lane, f.priority, f.due_at,
        f.limit_id, ${bounds.ready}, ${claims}::int, f.coalesced, f.coalesced_from,
        CASE WHEN ${claims} THEN ${instanceId}::uuid END, CASE WHEN ${claims} THEN f.now END, CASE WHEN ${claims} THEN f.now END,
        f.overlap <> 'allow', f.outcome_watched${bounds.values}, f.now, f.now
      FROM fires f WHERE f.skipped IS NULL ${onConflict}
      RETURNING id, status
    )${isAnySkipped ? missedOf(bounds, intents) : sql``}${isAnyMissed ? BROKE : sql``}
    SELECT clock.now::timestamptz(3) AS now, (SELECT count(*) FROM advanced)::int AS advanced,
      ${idsUnlessAll(isAnySkipped ? sql`(SELECT id FROM recorded UNION ALL TABLE missed) AS written` : sql`recorded`, intents.length)} AS inserted,
      ${alone ? sql`NULL` : sql`(SELECT string_agg(id::text, ',') FROM recorded WHERE status = 'waiting')`} AS waiting,
      ${bounds.expired} AS expired,
      ${isAnySkipped ? sql`(SELECT count(*) FROM caused)::int` : sql`0`}
        + ${isAnyMissed ? sql`(SELECT count(*) FROM broke)::int` : sql`0`} AS effects
    FROM clock`);
  if (!row) throw new Error('the intent statement answered no row');
  return {
    advanced: row.advanced,
    claimedAt: toInstant(row.now),
    inserted: isAmong(row.inserted),
    waits: isAmong(row.waiting ?? ''),
    expired: isAmong(row.expired ?? ''),
    effects: row.effects,
  };
}

/** Fires that were missed and are not caught up with: they end as they are recorded. */
const missedOf = ({ late }: typeof OF_UNBOUNDED, intents: readonly Intent[]) => sql`, missed AS (
      INSERT INTO history (id, scheduled_for, schedule_uid, schedule_version, schedule_id, trigger, status, reason, lane, priority,
        limit_id, due_at, attempts, coalesced, coalesced_from, error, created_at, updated_at, finished_at, ended_at${late.names})
      SELECT f.id, f.scheduled_for, f.uid, f.version, f.schedule_id, f.trigger,
        ${sql.raw(stepTo(null, 'skipped', 'recordIntentsIfLocked'))}, f.skipped, f.lane, f.priority,
        f.limit_id, f.due_at, 0, f.coalesced, f.coalesced_from, ${errorsOf(intents)}, f.now, f.now, f.now, f.now${late.values}
      FROM fires f WHERE f.skipped IS NOT NULL
      RETURNING id
    ), caused AS (
      INSERT INTO effects (kind, run_id, schedule_uid, schedule_version, schedule_id, trigger, status, finished_at, attempt)
      SELECT 'followers', f.id, f.uid, f.version, f.schedule_id, f.trigger, 'skipped', f.now, 0
      FROM fires f
      WHERE f.skipped IS NOT NULL
        AND ${isFollowed({ uid: sql`f.uid`, id: sql`f.schedule_id` })}
      RETURNING 1
    )`;

/** Of fires `f` that a caller asked to skip, and said why. */
function errorsOf(intents: readonly Intent[]): SQL {
  const told = intents.filter((intent) => errorOfSkip(intent) !== null);
  if (told.length === 0) return sql`NULL::jsonb`;
  const errors = told.map((intent) => JSON.stringify(errorOfSkip(intent)));
  return sql`(SELECT t.error::jsonb FROM unnest(${uuids(told.map(({ id }) => id))}, ${texts(errors)}) AS t(id, error) WHERE t.id = f.id)`;
}

/** Schedules of which fires were missed: one effect for each, about the first record, that counts the fires. */
const BROKE = sql`, broke AS (
      INSERT INTO effects (kind, alert_kind, run_id, schedule_uid, schedule_version, schedule_id, trigger, status, finished_at, attempt)
      SELECT 'breaks', 'missed', (array_agg(f.id ORDER BY f.scheduled_for))[1], f.uid, f.version, f.schedule_id, 'catchUp', 'skipped',
        max(f.scheduled_for), sum(f.coalesced + (f.trigger = 'catchUp' OR coalesce(f.skipped IN ('missed', 'limit'), false))::int)
      FROM fires f WHERE f.coalesced > 0 OR f.trigger = 'catchUp' OR f.skipped IN ('missed', 'limit')
      GROUP BY f.uid, f.version, f.schedule_id
      RETURNING 1
    )`;
