import { type SQL, sql } from 'drizzle-orm';
import { type Instant, isoInstant } from '../core/instant.ts';
import { type RunTrigger, plannedRunId } from '../core/run.ts';
import type { PlannedFire, SkipReason } from '../core/time/catch-up.ts';
import { booleans, fromMs, ints, milliseconds, texts, uuids } from './arrays.ts';
import { anyUid } from './by-key.ts';
import { isUniqueViolation } from './errors.ts';
import type { Executor } from './executor.ts';
import {
  AFTERMATH,
  type Aftermath,
  type AftermathRow,
  NO_AFTERMATH,
  RECORDED,
  aftermathOf,
  followEnds,
  oldestOf,
} from './followers.ts';
import { LOCK_LIMIT } from './lock-limit.ts';
import { type InstantText, frequentRowsOf, idsUnlessAll, isAmong, rowsOf, toInstant } from './rows.ts';
import { overlapOf } from './timings.ts';

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

/** What records a planned fire, but for who claims it. */
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
  lastFireAt: Instant | null;
}

export interface Recorded {
  /** Schedules whose guard held; the others' locks were lost and nothing of them was written. */
  advanced: number;
  /** Whether this very statement inserted the run of that id; one asked for as claimed is then. */
  inserted(id: string): boolean;
  /** When they were claimed. */
  claimedAt: Instant;
  /** Of those that are skipped. */
  aftermath: Aftermath;
}

/**
 * Records fires and moves their schedules on, in one statement: all of a schedule or nothing of it. A lock that was
 * lost meanwhile (a pause longer than its TTL, an edit) writes nothing. One occurrence has one run, whoever comes first.
 * Where runs of a schedule must not overlap, they are recorded as waiting, for judgeOverlapsUnderLock in the same transaction.
 * Callers sort by uid: rows are locked in one order everywhere.
 *
 * `alone`: outside of a transaction. A cursor moves on with its fires, so that one of them is there already only after a backfill, or
 * where a cursor was set back. So the first try asks for none to be there, which saves a sixth of the statement; the unique index
 * refuses all of it otherwise, and the second one leaves out what is there. Not where more is caught up with than a fire each: there
 * such runs are likelier, and a second try of thousands would take its time. Where somebody holds a schedule's row for long it fails
 * (isLockedByOthers).
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

/**
 * The guard is a CASE so that the planner cannot take it for a filter: statistics call locked schedules rare, and it would compare
 * each with each.
 */
async function record(
  db: Executor,
  instanceId: string,
  advances: readonly Advance[],
  intents: readonly Intent[],
  { alone, onConflict }: { alone: boolean; onConflict: SQL },
): Promise<Recorded> {
  const [row] = await frequentRowsOf<
    { now: InstantText; advanced: number; inserted: string | null } & AftermathRow
  >(
    db,
    sql`WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now${alone ? sql`, ${LOCK_LIMIT}` : sql``}),
    advanced AS (
      UPDATE schedules s SET next_occurrence_at = ${fromMs(sql`coalesce(a.next_occurrence_ms, a.next_fire_ms)`)},
        next_fire_at = ${fromMs(sql`a.next_fire_ms`)}, last_fire_at = coalesce(${fromMs(sql`a.last_fire_ms`)}, s.last_fire_at),
        error = NULL, plan_failures = 0, locked_by = NULL, locked_at = NULL
      FROM clock, unnest(${uuids(advances.map((advance) => advance.uid))}, ${ints(advances.map((advance) => advance.version))},
        ${milliseconds(advances.map((advance) => advance.lockedAt))}, ${milliseconds(advances.map(occurrenceApart))},
        ${milliseconds(advances.map((advance) => advance.nextFireAt))},
        ${milliseconds(advances.map((advance) => advance.lastFireAt))})
        WITH ORDINALITY AS a(uid, version, locked_ms, next_occurrence_ms, next_fire_ms, last_fire_ms, place)
      WHERE s.uid = a.uid AND ${anyUid(sql`a.uid`)}
        AND CASE WHEN s.locked_by = ${instanceId} THEN s.locked_at = ${fromMs(sql`a.locked_ms`)} AND s.version = a.version END
      RETURNING a.place, s.uid, s.id, s.version, s.lane, s.priority, s.overlap, s.timing_version
    ), recorded AS (
      ${insertRuns(intents, { uids: advances.map(uidOf), rows: sql`advanced`, instanceId, onConflict })}
    ), ${followEnds(sql`recorded`)}
    SELECT clock.now::timestamptz(3) AS now, (SELECT count(*) FROM advanced)::int AS advanced,
      ${idsUnlessAll(sql`recorded`, intents.length)} AS inserted,
      ${AFTERMATH} FROM clock, aftermath`,
  );
  if (!row) throw new Error('the intent statement answered no row');
  return {
    advanced: row.advanced,
    claimedAt: toInstant(row.now),
    inserted: isAmong(row.inserted),
    aftermath: aftermathOf(row),
  };
}

/** Null where it is the next fire, as it mostly is. */
function occurrenceApart({ nextOccurrenceAt, nextFireAt }: Advance): Instant | null {
  return nextOccurrenceAt === nextFireAt ? null : nextOccurrenceAt;
}

function uidOf({ uid }: Pick<Advance, 'uid'>): string {
  return uid;
}

/**
 * Records what was due before an edit, unclaimed, under the definition the schedules' rows still have. The caller holds the
 * row locks, and judges what must not overlap.
 */
export async function recordDueBeforeEdit(
  tx: Executor,
  intents: readonly Omit<Intent, 'claimed'>[],
  now: Instant,
): Promise<Aftermath> {
  if (intents.length === 0) return NO_AFTERMATH;
  const unclaimed = intents.map((intent) => ({ ...intent, claimed: false }));
  const uids = [...new Set(intents.map(({ scheduleUid }) => scheduleUid))];
  const [row] = await rowsOf<AftermathRow>(
    tx,
    sql`WITH clock AS (SELECT ${isoInstant(now)}::timestamptz AS now), edited AS (
      SELECT s.*, e.place FROM unnest(${uuids(uids)}) WITH ORDINALITY AS e(uid, place) JOIN schedules s USING (uid)
    ), recorded AS (
      ${insertRuns(unclaimed, { uids, rows: sql`edited`, instanceId: null, onConflict: LEAVING_OUT })}
    ), ${followEnds(sql`recorded`)}
    SELECT ${AFTERMATH} FROM aftermath`,
  );
  return { ...aftermathOf(row), openedSince: oldestOf(intents.map(({ scheduledFor }) => scheduledFor)) };
}

interface Insertion {
  uids: readonly string[];
  rows: SQL;
  /** Who has those that are claimed. */
  instanceId: string | null;
  onConflict: SQL;
}

/**
 * What all runs of a schedule have in common comes from its row, in `rows`, by its place among `uids`. Of a day that was dropped
 * nothing is recorded: it may have had that run. What mostly goes without saying is not said: a fire is due when it is scheduled,
 * stands for itself alone, and for an occurrence that was not missed.
 */
function insertRuns(intents: readonly Intent[], { uids, rows, instanceId, onConflict }: Insertion): SQL {
  const overlap = overlapOf(sql`s`);
  const scheduledFor = fromMs(sql`i.scheduled_ms`);
  const places = new Map(uids.map((uid, index) => [uid, index + 1]));
  return sql`INSERT INTO runs (id, scheduled_for, schedule_uid, schedule_version, schedule_id, trigger, status, reason, lane,
      priority, due_at, attempts, coalesced, coalesced_from, claimed_by, claimed_at, first_claimed_at, finished_at, overlap_guarded,
      created_at, updated_at)
    SELECT i.id, ${scheduledFor}, s.uid, s.version, s.id, coalesce(i.trigger, ${USUAL_TRIGGER}),
      CASE WHEN i.skipped IS NOT NULL THEN 'skipped' WHEN ${overlap} <> 'allow' THEN 'waiting' ELSE 'pending' END, i.skipped,
      s.lane, s.priority, coalesce(${fromMs(sql`i.due_ms`)}, ${scheduledFor}), i.claimed::int, coalesce(i.coalesced, 0), ${fromMs(sql`i.coalesced_from_ms`)},
      CASE WHEN i.claimed THEN ${instanceId}::uuid END, CASE WHEN i.claimed THEN clock.now END, CASE WHEN i.claimed THEN clock.now END,
      CASE WHEN i.skipped IS NOT NULL THEN clock.now END, ${overlap} <> 'allow', clock.now, clock.now
    FROM unnest(${uuids(intents.map((intent) => intent.id))}, ${ints(intents.map(({ scheduleUid }) => places.get(scheduleUid) ?? null))},
      ${milliseconds(intents.map((intent) => intent.scheduledFor))},
      ${texts(intents.map(({ trigger }) => (trigger === USUAL_TRIGGER ? null : trigger)))},
      ${milliseconds(intents.map((intent) => (intent.dueAt === intent.scheduledFor ? null : intent.dueAt)))},
      ${texts(intents.map((intent) => intent.skipped))}, ${ints(intents.map((intent) => intent.coalesced || null))},
      ${milliseconds(intents.map((intent) => intent.coalescedFrom))}, ${booleans(intents.map((intent) => intent.claimed))})
      AS i(id, place, scheduled_ms, trigger, due_ms, skipped, coalesced, coalesced_from_ms, claimed)
    JOIN ${rows} s ON s.place = i.place CROSS JOIN clock
    WHERE coalesce(${scheduledFor} >= (SELECT dropped_before FROM history), true)
    ${onConflict}
    RETURNING ${RECORDED}`;
}

const USUAL_TRIGGER = 'schedule' satisfies RunTrigger;
