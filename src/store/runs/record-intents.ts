import { type SQL, sql } from 'drizzle-orm';
import type { Instant } from '../../core/instant.ts';
import { type RunTrigger, plannedRunId } from '../../core/runs/run.ts';
import type { PlannedFire, SkipReason } from '../../core/time/plan-due.ts';
import { booleans, fromMs, ints, milliseconds, texts, uuids } from '../../postgres/sql/arrays.ts';
import { anyUid } from '../../postgres/sql/by-key.ts';
import { follows } from '../effects/followers.ts';
import { isUniqueViolation } from '../../postgres/errors.ts';
import type { Executor } from '../../postgres/executor.ts';
import { LOCK_LIMIT } from '../../postgres/sql/lock-limit.ts';
import {
  type InstantText,
  queryPrepared,
  idsUnlessAll,
  isAmong,
  toInstant,
} from '../../postgres/sql/rows.ts';

/** One fire to be recorded. */
export interface Intent {
  id: string;
  scheduleUid: string;
  scheduledFor: Instant;
  trigger: RunTrigger;
  dueAt: Instant;
  skipped: SkipReason | null;
  coalesced: number;
  coalescedFrom: Instant | null;
  /** The recording instance has a free slot for it and sends it itself: no second round trip. */
  claimed: boolean;
}

/** The record of a planned fire, but for which instance claims it. */
export function intentOf(scheduleUid: string, fire: PlannedFire): Omit<Intent, 'claimed'> {
  return { ...fire, scheduleUid, id: plannedRunId(scheduleUid, fire.scheduledFor) };
}

/** Where a schedule stands after its plan; the guard is what the fire-lock statement answered. */
export interface Advance {
  uid: string;
  version: number;
  lockedAt: Instant;
  /** Null with the next fire, and only then. */
  nextOccurrenceAt: Instant | null;
  nextFireAt: Instant | null;
  /** The newest occurrence that this plan records, and the newest that it fires. */
  plannedThrough: Instant | null;
  lastFireAt: Instant | null;
}

export interface Recorded {
  /** Schedules whose guard held; the others' locks were lost and nothing of them was written. */
  advanced: number;
  /** Whether this statement inserted the run with that id: with its claim, where one was asked for. */
  inserted(id: string): boolean;
  /** When they were claimed. */
  claimedAt: Instant;
  /** Of runs that ended at once, as missed: how many effects there are to see to. */
  effects: number;
}

/**
 * Records fires and moves their schedules on, in one statement: all of a schedule or nothing of it. A lock that was lost meanwhile (a
 * pause longer than its TTL, an edit) writes nothing. A fire that is skipped is recorded as ended, in history. Where runs of a schedule
 * must not overlap, they are recorded as waiting, for judgeOverlapsUnderLock in the same transaction. Callers sort by uid: rows are
 * locked in one order everywhere.
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
  { alone }: { alone: boolean },
): Promise<Recorded> {
  const write = (onConflict: SQL) => record(db, instanceId, advances, intents, { alone, onConflict });
  if (!alone || intents.length > advances.length) return write(LEAVING_OUT);
  try {
    return await write(sql``);
  } catch (error) {
    if (!isUniqueViolation(error)) throw error;
    return write(LEAVING_OUT);
  }
}

/** Those that are there. */
const LEAVING_OUT = sql`ON CONFLICT DO NOTHING`;

interface RecordedRow {
  now: InstantText;
  advanced: number;
  inserted: string | null;
  effects: number;
}

/**
 * The guard is a CASE, which hides it from the planner. Statistics say that locked schedules are rare: with a plain condition the
 * planner would compare each with each. The batch leaves out usual values: a fire is due when it is scheduled, stands for itself
 * alone, and is on time.
 */
// eslint-disable-next-line max-lines-per-function -- one statement
async function record(
  db: Executor,
  instanceId: string,
  advances: readonly Advance[],
  intents: readonly Intent[],
  { alone, onConflict }: { alone: boolean; onConflict: SQL },
): Promise<Recorded> {
  const { firsts, further } = byPlace(advances, intents);
  const isAnySkipped = intents.some(({ skipped }) => skipped !== null);
  const [row] = await queryPrepared<RecordedRow>(
    db,
    sql`WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now${alone ? sql`, ${LOCK_LIMIT}` : sql``}),
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
      RETURNING s.uid, s.id AS schedule_id, s.version, s.lane, s.priority, s.overlap, clock.now, a.place, ${FIRE_COLUMNS}
    )${further ? furtherFires(further) : sql``}, fires AS ${isAnySkipped ? sql`MATERIALIZED` : sql`NOT MATERIALIZED`} (
      SELECT f.uid, f.schedule_id, f.version, f.lane, f.priority, f.overlap, f.now, f.fire_id AS id,
        ${fromMs(sql`f.scheduled_ms`)} AS scheduled_for, coalesce(f.trigger, ${USUAL_TRIGGER}) AS trigger,
        ${fromMs(sql`coalesce(f.due_ms, f.scheduled_ms)`)} AS due_at, f.skipped, coalesce(f.coalesced, 0) AS coalesced,
        ${fromMs(sql`f.coalesced_from_ms`)} AS coalesced_from, f.claimed
      FROM ${further ? sql`(TABLE advanced UNION ALL TABLE further)` : sql`advanced`} AS f WHERE f.fire_id IS NOT NULL
    ), recorded AS (
      INSERT INTO runs (id, scheduled_for, schedule_uid, schedule_version, schedule_id, trigger, status, lane, priority, due_at,
        ready, attempts, coalesced, coalesced_from, claimed_by, claimed_at, first_claimed_at, overlap_guarded, created_at, updated_at)
      SELECT f.id, f.scheduled_for, f.uid, f.version, f.schedule_id, f.trigger,
        CASE WHEN f.overlap = 'allow' THEN 'pending' ELSE 'waiting' END, f.lane, f.priority, f.due_at,
        f.due_at <= f.now, f.claimed::int, f.coalesced, f.coalesced_from,
        CASE WHEN f.claimed THEN ${instanceId}::uuid END, CASE WHEN f.claimed THEN f.now END, CASE WHEN f.claimed THEN f.now END,
        f.overlap <> 'allow', f.now, f.now
      FROM fires f WHERE f.skipped IS NULL ${onConflict}
      RETURNING id
    )${isAnySkipped ? MISSED : sql``}
    SELECT clock.now::timestamptz(3) AS now, (SELECT count(*) FROM advanced)::int AS advanced,
      ${idsUnlessAll(isAnySkipped ? sql`(TABLE recorded UNION ALL TABLE missed) AS written` : sql`recorded`, intents.length)} AS inserted,
      ${isAnySkipped ? sql`(SELECT count(*) FROM caused)::int` : sql`0`} AS effects
    FROM clock`,
  );
  if (!row) throw new Error('the intent statement answered no row');
  return {
    advanced: row.advanced,
    claimedAt: toInstant(row.now),
    inserted: isAmong(row.inserted),
    effects: row.effects,
  };
}

/** Fires that were missed and are not caught up with: they end as they are recorded. */
const MISSED = sql`, missed AS (
      INSERT INTO history (id, scheduled_for, schedule_uid, schedule_version, schedule_id, trigger, status, reason, lane, priority,
        due_at, attempts, coalesced, coalesced_from, created_at, updated_at, finished_at, ended_at)
      SELECT f.id, f.scheduled_for, f.uid, f.version, f.schedule_id, f.trigger, 'skipped', f.skipped, f.lane, f.priority,
        f.due_at, 0, f.coalesced, f.coalesced_from, f.now, f.now, f.now, f.now
      FROM fires f WHERE f.skipped IS NOT NULL
      RETURNING id
    ), caused AS (
      INSERT INTO effects (kind, run_id, schedule_uid, schedule_version, schedule_id, trigger, status, finished_at, attempt)
      SELECT 'followers', f.id, f.uid, f.version, f.schedule_id, f.trigger, 'skipped', f.now, 0
      FROM fires f
      WHERE f.skipped IS NOT NULL
        AND EXISTS (SELECT FROM schedules s WHERE ${follows(sql`s.after_uid`, sql`f.uid`)})
      RETURNING 1
    )`;

/** Of one fire in a batch, as its columns are called in the statement. */
const FIRE_COLUMNS = sql`fire_id, scheduled_ms, trigger, due_ms, skipped, coalesced, coalesced_from_ms, claimed`;

function columnsOf(fires: readonly (Intent | undefined)[]): SQL {
  return sql`${uuids(fires.map((fire) => fire?.id ?? null))}, ${milliseconds(fires.map((fire) => fire?.scheduledFor ?? null))},
    ${texts(fires.map((fire) => (!fire || fire.trigger === USUAL_TRIGGER ? null : fire.trigger)))},
    ${milliseconds(fires.map((fire) => (!fire || fire.dueAt === fire.scheduledFor ? null : fire.dueAt)))},
    ${texts(fires.map((fire) => fire?.skipped ?? null))}, ${ints(fires.map((fire) => (fire?.coalesced === 0 ? null : (fire?.coalesced ?? null))))},
    ${milliseconds(fires.map((fire) => fire?.coalescedFrom ?? null))}, ${booleans(fires.map((fire) => fire?.claimed ?? null))}`;
}

/** Fires beyond the first of a schedule, each with the place of its schedule in the batch, from 1. */
interface FurtherFires {
  places: number[];
  fires: Intent[];
}

/**
 * The first fire of each schedule, at its schedule's place, and those beyond. A schedule has one fire as a rule: it
 * travels in the row of its schedule. A join of fires and schedules would compare each with each, since the planner
 * expects the guard to let one row pass.
 */
function byPlace(
  advances: readonly Advance[],
  intents: readonly Intent[],
): { firsts: (Intent | undefined)[]; further: FurtherFires | null } {
  const places = new Map(advances.map(({ uid }, index) => [uid, index]));
  const firsts = new Array<Intent | undefined>(advances.length).fill(undefined);
  const further: FurtherFires = { places: [], fires: [] };
  for (const intent of intents) {
    const place = places.get(intent.scheduleUid);
    if (place === undefined) continue;
    if (firsts[place] === undefined) {
      firsts[place] = intent;
    } else {
      further.places.push(place + 1);
      further.fires.push(intent);
    }
  }
  return { firsts, further: further.fires.length > 0 ? further : null };
}

function furtherFires({ places, fires }: FurtherFires): SQL {
  return sql`, further AS (
      SELECT s.uid, s.schedule_id, s.version, s.lane, s.priority, s.overlap, s.now, s.place, i.fire_id, i.scheduled_ms, i.trigger, i.due_ms,
        i.skipped, i.coalesced, i.coalesced_from_ms, i.claimed
      FROM unnest(${ints(places)}, ${columnsOf(fires)}) AS i(place, ${FIRE_COLUMNS}) JOIN advanced s ON s.place = i.place
    )`;
}

/** Null where it equals the next fire, which is the usual case. */
function occurrenceApart({ nextOccurrenceAt, nextFireAt }: Advance): Instant | null {
  return nextOccurrenceAt === nextFireAt ? null : nextOccurrenceAt;
}

/** Null where it equals the last fire, which is the usual case. */
function plannedApart({ plannedThrough, lastFireAt }: Advance): Instant | null {
  return plannedThrough === lastFireAt ? null : plannedThrough;
}

const USUAL_TRIGGER = 'schedule' satisfies RunTrigger;
