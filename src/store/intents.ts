import { type SQL, sql } from 'drizzle-orm';
import { type Instant, isoInstant } from '../core/instant.ts';
import { type RunTrigger, plannedRunId } from '../core/run.ts';
import type { PlannedFire, SkipReason } from '../core/time/catch-up.ts';
import { booleans, instants, ints, texts, uuids } from './arrays.ts';
import { anyUid } from './by-key.ts';
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
import { type InstantText, frequentRowsOf, rowsOf, toInstant } from './rows.ts';
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
  nextOccurrenceAt: Instant | null;
  nextFireAt: Instant | null;
  lastFireAt: Instant | null;
}

export interface Recorded {
  /** Schedules whose guard held; the others' locks were lost and nothing of them was written. */
  advanced: number;
  /** Ids of the runs that this very statement inserted; those asked for as claimed are. */
  inserted: ReadonlySet<string>;
  /** When they were claimed. */
  claimedAt: Instant;
  /** Of those that are skipped. */
  aftermath: Aftermath;
}

/**
 * Records fires and moves their schedules on, in one statement: all of a schedule or nothing of it. A lock that was
 * lost meanwhile (a pause longer than its TTL, an edit) writes nothing. One occurrence has one run, whoever comes first.
 * Where runs of a schedule must not overlap, they are recorded as waiting, for judgeOverlapsUnderLock in the same transaction.
 * Callers sort by uid: rows are locked in one order everywhere. The guard is a CASE so that the planner cannot take it
 * for a filter: statistics call locked schedules rare, and it would compare each with each.
 */
export async function recordIntentsIfLocked(
  db: Executor,
  instanceId: string,
  advances: readonly Advance[],
  intents: readonly Intent[],
): Promise<Recorded> {
  const rows = await frequentRowsOf<{ now: InstantText; advanced: number; id: string | null } & AftermathRow>(
    db,
    sql`WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now),
    advanced AS (
      UPDATE schedules s SET next_occurrence_at = a.next_occurrence_at, next_fire_at = a.next_fire_at,
        last_fire_at = coalesce(a.last_fire_at, s.last_fire_at), error = NULL, plan_failures = 0,
        locked_by = NULL, locked_at = NULL
      FROM unnest(${uuids(advances.map((advance) => advance.uid))}, ${ints(advances.map((advance) => advance.version))},
        ${instants(advances.map((advance) => advance.lockedAt))},
        ${instants(advances.map((advance) => advance.nextOccurrenceAt))},
        ${instants(advances.map((advance) => advance.nextFireAt))},
        ${instants(advances.map((advance) => advance.lastFireAt))})
        AS a(uid, version, locked_at, next_occurrence_at, next_fire_at, last_fire_at)
      WHERE s.uid = a.uid AND ${anyUid(sql`a.uid`)}
        AND CASE WHEN s.locked_by = ${instanceId} THEN s.locked_at = a.locked_at AND s.version = a.version END
      RETURNING s.uid, s.id, s.version, s.lane, s.priority, s.overlap, s.timing_version
    ), recorded AS (
      ${insertRuns(intents, sql`advanced`, instanceId)}
    ), ${followEnds(sql`recorded`)}
    SELECT clock.now, (SELECT count(*) FROM advanced)::int AS advanced, recorded.id, ${AFTERMATH}
    FROM clock CROSS JOIN aftermath LEFT JOIN recorded ON true`,
  );
  const [first] = rows;
  if (!first) throw new Error('the intent statement answered no row');
  return {
    advanced: first.advanced,
    claimedAt: toInstant(first.now),
    inserted: new Set(rows.flatMap((row) => row.id ?? [])),
    aftermath: aftermathOf(first),
  };
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
  const [row] = await rowsOf<AftermathRow>(
    tx,
    sql`WITH clock AS (SELECT ${isoInstant(now)}::timestamptz AS now),
    recorded AS (${insertRuns(unclaimed, sql`schedules`, null)}), ${followEnds(sql`recorded`)}
    SELECT ${AFTERMATH} FROM aftermath`,
  );
  return { ...aftermathOf(row), openedSince: oldestOf(intents.map(({ scheduledFor }) => scheduledFor)) };
}

/**
 * What all runs of a schedule have in common comes from its row, in `schedules` or what was returned of it. Of a day that was dropped
 * nothing is recorded: it may have had that run.
 */
function insertRuns(intents: readonly Intent[], rows: SQL, instanceId: string | null): SQL {
  const overlap = overlapOf(sql`s`);
  return sql`INSERT INTO runs (id, scheduled_for, schedule_uid, schedule_version, schedule_id, trigger, status, reason, lane,
      priority, due_at, attempts, coalesced, coalesced_from, claimed_by, claimed_at, first_claimed_at, finished_at, overlap_guarded,
      created_at, updated_at)
    SELECT i.id, i.scheduled_for, s.uid, s.version, s.id, i.trigger,
      CASE WHEN i.skipped IS NOT NULL THEN 'skipped' WHEN ${overlap} <> 'allow' THEN 'waiting' ELSE 'pending' END, i.skipped,
      s.lane, s.priority, i.due_at, i.claimed::int, i.coalesced, i.coalesced_from,
      CASE WHEN i.claimed THEN ${instanceId}::uuid END, CASE WHEN i.claimed THEN clock.now END, CASE WHEN i.claimed THEN clock.now END,
      CASE WHEN i.skipped IS NOT NULL THEN clock.now END, ${overlap} <> 'allow', clock.now, clock.now
    FROM unnest(${uuids(intents.map((intent) => intent.id))}, ${uuids(intents.map((intent) => intent.scheduleUid))},
      ${instants(intents.map((intent) => intent.scheduledFor))}, ${texts(intents.map((intent) => intent.trigger))},
      ${instants(intents.map((intent) => intent.dueAt))}, ${texts(intents.map((intent) => intent.skipped))},
      ${ints(intents.map((intent) => intent.coalesced))},
      ${instants(intents.map((intent) => intent.coalescedFrom))}, ${booleans(intents.map((intent) => intent.claimed))})
      AS i(id, schedule_uid, scheduled_for, trigger, due_at, skipped, coalesced, coalesced_from, claimed)
    JOIN ${rows} s ON s.uid = i.schedule_uid CROSS JOIN clock
    WHERE coalesce(i.scheduled_for >= (SELECT dropped_before FROM history), true)
    ON CONFLICT DO NOTHING
    RETURNING ${RECORDED}`;
}
