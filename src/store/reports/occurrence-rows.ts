import { sql } from 'drizzle-orm';
import { type Instant, isoInstant } from '../../core/instant.ts';
import { firstRunIdAt } from '../../core/runs/run.ts';
import { readDefinition, type StoredDefinition, readTiming } from '../../core/schedules/stored-definition.ts';
import { type PlannedUpTo, planningGoesOnAfter } from '../../core/time/cursors.ts';
import type { Position, VersionSpan } from '../../core/time/expected-occurrences.ts';
import type { PlannedRun, PlanningState } from '../../core/time/occurrences.ts';
import type { Executor } from '../../postgres/executor.ts';
import { uuids, FIRST_UUID } from '../../postgres/sql/arrays.ts';
import { recordsOf, rowsOf } from '../../postgres/sql/rows.ts';
import { CURSOR } from '../schedules/cursors-ahead.ts';
import { skipsOf } from '../schedules/skips.ts';
import { type Scope, prefixRanges, seenPrefixes } from '../../core/access/scope.ts';
import type { Identity, Timing } from '../../core/timing/timing.ts';

/** The present moment and how far planning has come. Read first: whatever is planned meanwhile is then found among the runs. */
export async function readPlanningState(db: Executor, scheduleId: string): Promise<Omit<PlanningState, 'horizon'>> {
  type Row = PlannedUpTo & { now: Instant; uid: string | null; inError: boolean; hasSkips: boolean };
  const [row] = await recordsOf<Row>(db)(sql`-- readPlanningState
    WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now)
    SELECT clock.now, s.uid, ${CURSOR}, s.error IS NOT NULL AS in_error, coalesce(s.has_skips, false) AS has_skips
    FROM clock LEFT JOIN schedules s ON s.id = ${scheduleId}`);
  if (!row) throw new Error('the database gave no time');
  const { uid, inError, nextOccurrenceAt, now } = row;
  if (uid === null) return { now, current: null };
  const found = row.hasSkips ? (await skipsOf(db, [uid])).get(uid) : undefined;
  const skips = new Set([...(found ?? [])].flatMap(([at, { made }]) => (made ? [] : [at])));
  return {
    now,
    current: { uid, nextOccurrenceAt, inError, skips, goesOnAfter: planningGoesOnAfter(row, now) },
  };
}

/** A schedule that had an id. They follow each other: one is deleted before the next is created. */
export interface ScheduleIncarnation {
  uid: string;
  createdAt: Instant;
}

/** In the order of their creation. */
export function incarnationsOf(db: Executor, scheduleId: string): Promise<ScheduleIncarnation[]> {
  return recordsOf<ScheduleIncarnation>(db)(sql`-- incarnationsOf
    SELECT schedule_uid AS uid, at AS created_at FROM schedule_versions WHERE schedule_id = ${scheduleId} AND version = 1
    ORDER BY at, schedule_uid`);
}

/** Whether its last definition makes it fire at the ends of others' runs. */
export async function isFollower(db: Executor, uid: string): Promise<boolean> {
  const [row] = await rowsOf<{ follows: boolean | null }>(db)(sql`-- isFollower
    SELECT jsonb_typeof(definition->'after') = 'object' AS follows FROM schedule_versions
    WHERE schedule_uid = ${uid} ORDER BY version DESC LIMIT 1`);
  return row?.follows ?? false;
}

/** The version in force for what is due at an instant; the first one, if there was none yet. */
export async function versionFor(db: Executor, uid: string, dueAt: Instant): Promise<number> {
  const [row] = await rowsOf<{ version: number }>(db)(sql`-- versionFor
    SELECT version FROM schedule_versions WHERE schedule_uid = ${uid} AND at < ${isoInstant(dueAt)}::timestamptz
    ORDER BY version DESC LIMIT 1`);
  return row?.version ?? 1;
}

/** The version from which on all are stored, and since when it is in force; null: all are. */
export async function wholeSince(db: Executor, uid: string): Promise<{ version: number; at: Instant } | null> {
  const [since = null] = await recordsOf<{ version: number; at: Instant }>(db)(sql`-- wholeSince
    SELECT v.version, v.at FROM schedule_versions v WHERE v.schedule_uid = ${uid} AND v.version > 1 AND NOT EXISTS (
      SELECT FROM schedule_versions before WHERE before.schedule_uid = v.schedule_uid AND before.version = v.version - 1)
    ORDER BY v.version DESC LIMIT 1`);
  return since;
}

/**
 * How long each version was in force, from one version on, in their order. A deletion only ends the version before it. One whose
 * successor retention has dropped is left out: until when it was in force is not known any more.
 */
export async function versionSpans(
  db: Executor,
  { uid, createdAt }: ScheduleIncarnation,
  { from, limit }: { from: number; limit: number },
): Promise<VersionSpan[]> {
  type Row = Pick<VersionSpan, 'version' | 'since' | 'until'> & { id: string; definition: StoredDefinition };
  const rows = await recordsOf<Row>(db)(sql`-- versionSpans
    SELECT v.version, v.schedule_id AS id, v.at AS since, following.at AS until, v.definition FROM schedule_versions v
    LEFT JOIN schedule_versions following
      ON following.schedule_uid = v.schedule_uid AND following.version = v.version + 1
    WHERE v.schedule_uid = ${uid} AND v.version >= ${from} AND v.change <> 'deleted'
      AND (following.at IS NOT NULL OR NOT EXISTS (SELECT FROM schedule_versions later
        WHERE later.schedule_uid = v.schedule_uid AND later.version > v.version))
    ORDER BY v.version LIMIT ${limit}`);
  return rows.flatMap(({ id, definition, ...span }) =>
    untilPauseEnds(definition.pauseUntil, {
      ...{ ...span, uid, identity: { id, createdAt }, enabled: definition.enabled },
      timing: readDefinition(definition, null),
    }),
  );
}

/** A pause in force that ends by itself: what is due afterwards will fire, even before the version exists that says so. */
function untilPauseEnds(pauseUntil: Instant | null, span: VersionSpan): VersionSpan[] {
  if (span.enabled || pauseUntil === null || span.until !== null) return [span];
  const since = Math.max(pauseUntil - 1, span.since);
  return [
    { ...span, until: since },
    { ...span, since, enabled: true },
  ];
}

/** Planned runs of these schedules after a position, up to and with an instant, in the order of (scheduledFor, uid). */
export function plannedRuns(
  db: Executor,
  uids: readonly string[],
  { after, upTo, limit }: { after: Position; upTo: Instant; limit: number },
): Promise<PlannedRun[]> {
  return recordsOf<PlannedRun>(db)(sql`-- plannedRuns
    SELECT r.* FROM unnest(${uuids(uids)}) AS u(uid), LATERAL (
      SELECT ${PLANNED_RUN} FROM all_runs
      WHERE schedule_uid = u.uid AND trigger IN ('schedule', 'catchUp', 'backfill')
        AND id >= ${firstRunIdAt(after.fireAt)}::uuid AND id < ${firstRunIdAt(upTo + 1)}::uuid
        AND (scheduled_for, schedule_uid) > (${isoInstant(after.fireAt)}::timestamptz, ${after.uid}::uuid)
      ORDER BY id LIMIT ${limit}) AS r
    ORDER BY r.scheduled_for, r.uid LIMIT ${limit}`);
}

/** For each schedule, the first runs after an instant that stand for missed occurrences. */
export function recordsAfter(db: Executor, uids: readonly string[], at: Instant): Promise<PlannedRun[]> {
  return recordsOf<PlannedRun>(db)(sql`-- recordsAfter
    SELECT r.* FROM unnest(${uuids(uids)}) AS u(uid), LATERAL (
      SELECT ${PLANNED_RUN} FROM all_runs
      WHERE schedule_uid = u.uid AND coalesced > 0 AND trigger IN ('schedule', 'catchUp', 'backfill')
        AND id >= ${firstRunIdAt(at + 1)}::uuid
      ORDER BY id LIMIT ${RECORDS}) AS r`);
}

/** A `PlannedRun` of all_runs. */
const PLANNED_RUN = sql`id, schedule_uid AS uid, scheduled_for, schedule_version AS version, status, reason, coalesced, coalesced_from`;

/** The occurrences that they stand for are consecutive, unless an edit of the jitter lies in between. */
const RECORDS = 3;

interface TimedSchedule {
  uid: string;
  identity: Identity;
  /** Null: its row contains none. */
  timing: Timing | null;
  /** Some of its fires may not be to be made. */
  hasSkips: boolean;
  /** The moment after which planning goes on, if that is still to come ; else null. */
  goesOnAfter: Instant | null;
}

/** Where a page of timings begins: behind a uid, without a scope; with one, behind an id that the scope may have. */
export interface TimingPage {
  scope: Scope;
  /** Null: it is the first page. */
  after: string | null;
  limit: number;
}

interface TimedRow extends PlannedUpTo {
  uid: string;
  id: string;
  timing: string;
  createdAt: Instant;
  hasSkips: boolean;
  now: Instant;
}

/**
 * Enabled schedules with fire times of their own that a caller of this scope sees: in the order of their uids, or with a scope in that of
 * their ids, range by range, so that it reads past nothing between them.
 */
export async function listTimings(db: Executor, { scope, after, limit }: TimingPage): Promise<TimedSchedule[]> {
  if (scope === null) {
    const rows = await recordsOf<TimedRow>(db)(sql`-- listTimings
    SELECT ${TIMED} FROM schedules s
    WHERE s.enabled AND s.after_uid IS NULL AND s.uid > ${after ?? FIRST_UUID} ORDER BY s.uid LIMIT ${limit}`);
    return rows.map(toTimed);
  }
  const found: TimedRow[] = [];
  const last = after ?? '';
  for (const { from, end } of prefixRanges(seenPrefixes(scope)).filter((range) => range.end > last)) {
    if (found.length >= limit) break;
    const rows = await recordsOf<TimedRow>(db)(sql`-- listTimings
    SELECT ${TIMED} FROM schedules s
    WHERE s.enabled AND s.after_uid IS NULL AND s.id > ${last} AND s.id >= ${from} AND s.id < ${end}
    ORDER BY s.id LIMIT ${limit - found.length}`);
    found.push(...rows);
  }
  return found.map(toTimed);
}

const TIMED = sql`s.uid, s.id, s.created_at, s.timing, s.has_skips, clock_timestamp() AS now, ${CURSOR}`;

function toTimed({ uid, id, createdAt, timing, hasSkips, now, ...cursor }: TimedRow): TimedSchedule {
  const after = planningGoesOnAfter(cursor, now);
  const goesOnAfter = after > now ? after : null;
  return { uid, identity: { id, createdAt }, timing: timingOf(timing), hasSkips, goesOnAfter };
}

function timingOf(text: string): Timing | null {
  try {
    return readTiming(text);
  } catch {
    return null;
  }
}
