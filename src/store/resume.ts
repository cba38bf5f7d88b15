import { sql } from 'drizzle-orm';
import { type Instant, isoInstant } from '../core/instant.ts';
import { plannedRunId } from '../core/run.ts';
import { instants, ints, texts, uuids } from './arrays.ts';
import { aftermathIn } from './dependents.ts';
import type { Executor, Transaction } from './executor.ts';
import { AFTERMATH, type AftermathRow, ENDED, RECORDED, followEnds } from './followers.ts';
import { lives } from './instances.ts';
import { type InstantText, rowsOf, toInstant } from './rows.ts';
import { type TimingRow, isOver, timingColumns, timingOfRow } from './timings.ts';

/** What `firelock resume` reads and writes while no instance lives. */

export interface LivingInstance {
  id: string;
  host: string;
  /** Without another heartbeat it counts as gone after that. */
  livesForSeconds: number;
}

export async function livingInstances(db: Executor): Promise<LivingInstance[]> {
  const rows = await rowsOf<{ id: string; host: string; lives_for: number }>(
    db,
    sql`WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now)
    SELECT i.id, i.host, ceil(extract(epoch FROM i.heartbeat_at - clock.now) + i.ttl_seconds)::int AS lives_for
    FROM instances i, clock WHERE ${lives} ORDER BY i.started_at, i.id`,
  );
  return rows.map((row) => ({ id: row.id, host: row.host, livesForSeconds: row.lives_for }));
}

/** A schedule whose cursor stands in the past, as it stood when it was read: the guard of its move. */
export interface DueSchedule {
  uid: string;
  id: string;
  version: number;
  /** For `readTiming`. */
  timing: string;
  createdAt: Instant;
  /** No number where the row holds no moment. */
  nextOccurrenceAt: Instant;
}

/** Ordered by uid, after that of `after`. What is paused, has ended or is in error is not among them. */
export async function listDueSchedules(
  db: Executor,
  now: Instant,
  { after, limit }: { after: string; limit: number },
): Promise<DueSchedule[]> {
  const rows = await rowsOf<
    TimingRow & {
      uid: string;
      id: string;
      version: number;
      created_at: InstantText;
      next_occurrence_at: InstantText;
    }
  >(
    db,
    sql`SELECT uid, id, version, ${timingColumns(sql`schedules`)}, created_at, next_occurrence_at FROM schedules
    WHERE enabled AND error IS NULL AND next_fire_at <= ${isoInstant(now)}::timestamptz AND uid > ${after}
    ORDER BY uid LIMIT ${limit}`,
  );
  return rows.map((row) => ({
    uid: row.uid,
    id: row.id,
    version: row.version,
    timing: timingOfRow(row),
    createdAt: toInstant(row.created_at),
    nextOccurrenceAt: toInstant(row.next_occurrence_at),
  }));
}

export interface Skip {
  schedule: DueSchedule;
  /** The newest of what was due: the one record is of this moment. */
  scheduledFor: Instant;
  dueAt: Instant;
  trigger: 'schedule' | 'catchUp';
  /** How many others it stands for, and the first of them. */
  coalesced: number;
  coalescedFrom: Instant | null;
  nextOccurrenceAt: Instant | null;
  nextFireAt: Instant | null;
}

/**
 * Moves schedules on and records what was due of each as one skipped run, in one statement. One that was edited, moved or
 * set aside since it was read is left as it is. Answers the uids of those moved on. Callers sort by uid.
 */
export async function skipDueIfUnmoved(db: Executor, skips: readonly Skip[]): Promise<ReadonlySet<string>> {
  const schedules = skips.map(({ schedule }) => schedule);
  const firsts = instants(schedules.map(({ nextOccurrenceAt }) => nextOccurrenceAt));
  const rows = await rowsOf<{ uid: string }>(
    db,
    sql`WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now),
    input AS MATERIALIZED (
      SELECT * FROM unnest(${uuids(schedules.map(({ uid }) => uid))}, ${ints(schedules.map(({ version }) => version))},
        ${firsts}, ${uuids(skips.map(({ schedule, scheduledFor }) => plannedRunId(schedule.uid, scheduledFor)))},
        ${instants(skips.map(({ scheduledFor }) => scheduledFor))}, ${instants(skips.map(({ dueAt }) => dueAt))},
        ${texts(skips.map(({ trigger }) => trigger))}, ${ints(skips.map(({ coalesced }) => coalesced))},
        ${instants(skips.map(({ coalescedFrom }) => coalescedFrom))},
        ${instants(skips.map((skip) => skip.nextOccurrenceAt))}, ${instants(skips.map((skip) => skip.nextFireAt))})
        AS i(uid, version, first, run_id, scheduled_for, due_at, trigger, coalesced, coalesced_from, next_occurrence_at,
          next_fire_at)
    ), moved AS (
      UPDATE schedules s SET next_occurrence_at = i.next_occurrence_at, next_fire_at = i.next_fire_at,
        locked_by = NULL, locked_at = NULL
      FROM input i
      WHERE s.uid = i.uid AND CASE WHEN s.enabled AND s.error IS NULL
        THEN s.version = i.version AND s.next_occurrence_at = i.first END
      RETURNING s.uid, s.id, s.version, s.lane, s.priority
    ), recorded AS (
      INSERT INTO runs (id, scheduled_for, schedule_uid, schedule_version, schedule_id, trigger, status, reason, lane,
        priority, due_at, attempts, coalesced, coalesced_from, finished_at, created_at, updated_at)
      SELECT i.run_id, i.scheduled_for, s.uid, s.version, s.id, i.trigger, 'skipped', 'missed', s.lane, s.priority,
        i.due_at, 0, i.coalesced, i.coalesced_from, clock.now, clock.now, clock.now
      FROM input i JOIN moved s ON s.uid = i.uid CROSS JOIN clock
      ON CONFLICT DO NOTHING RETURNING ${RECORDED}
    ), ${followEnds(sql`recorded`)}
    SELECT uid FROM moved`,
  );
  return new Set(rows.map((row) => row.uid));
}

export interface PendingAfterResume {
  /** At most once, and now `unknown`. */
  ended: number;
  /** Their target is asked whether they arrived before anything is sent. */
  asked: number;
  /** Of the others. */
  left: number;
}

/**
 * Pending and waiting runs as the database has them, which may have been sent since what it holds. At most once: whatever was due,
 * claimed or not, ends as `unknown`, or is in doubt where the target can be asked, until nothing that was sent before can
 * still arrive; what is neither claimed nor due nobody can have sent. At least once: goes on, asked about first where
 * that can be.
 */
export async function doubtPendingRuns(
  tx: Transaction,
  { reason, lockTtlSeconds }: { reason: string; lockTtlSeconds: number },
): Promise<PendingAfterResume> {
  const columns = sql`SELECT scheduled_for, id, schedule_uid, schedule_version, due_at, claimed_by, in_doubt_until FROM runs`;
  const error = JSON.stringify({ kind: 'network', message: reason });
  const [row] = await rowsOf<{ ended_runs: number; asked: number; left: number } & AftermathRow>(
    tx,
    sql`WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now),
    pending AS MATERIALIZED (
      ${columns} WHERE status = 'pending' AND claimed_by IS NULL
      UNION ALL ${columns} WHERE status = 'pending' AND claimed_by IS NOT NULL
      UNION ALL ${columns} WHERE overlap_guarded AND status = 'waiting'
      UNION ALL ${columns} WHERE status = 'waiting' AND open_dependencies IS NOT NULL
    ), judged AS MATERIALIZED (
      SELECT p.scheduled_for, p.id, coalesce(v.definition->>'delivery' = 'atMostOnce', false) AS at_most_once,
        coalesce(jsonb_typeof(v.definition->'target'->'lookup') = 'object', false) AS has_lookup,
        make_interval(secs => (v.definition->>'timeoutSeconds')::float8) AS timeout
      FROM pending p LEFT JOIN schedule_versions v
        ON v.schedule_uid = p.schedule_uid AND v.version = p.schedule_version, clock
      WHERE p.in_doubt_until IS NULL AND (p.claimed_by IS NOT NULL OR p.due_at <= clock.now)
    ), locked AS MATERIALIZED (
      SELECT r.scheduled_for, r.id, j.at_most_once, j.has_lookup,
        CASE WHEN j.at_most_once
          THEN clock.now + j.timeout + make_interval(secs => ${lockTtlSeconds}) ELSE clock.now END AS in_doubt_until
      FROM judged j JOIN runs r ON r.scheduled_for = j.scheduled_for AND r.id = j.id, clock
      WHERE (j.at_most_once OR j.has_lookup) AND CASE WHEN r.status IN ('pending', 'waiting') THEN true END
      ORDER BY r.scheduled_for, r.id FOR UPDATE OF r
    ), ended AS (
      UPDATE runs r SET status = 'unknown', finished_at = clock.now, error = ${error}::jsonb, updated_at = clock.now
      FROM locked l, clock
      WHERE r.scheduled_for = l.scheduled_for AND r.id = l.id AND l.at_most_once AND NOT l.has_lookup
      RETURNING ${ENDED}
    ), ${followEnds(sql`ended`)}, asked AS (
      UPDATE runs r SET in_doubt_until = l.in_doubt_until, doubted_attempt = r.attempts, lookups = 0, due_at = greatest(r.due_at, l.in_doubt_until),
        claimed_by = NULL, claimed_at = NULL, updated_at = clock.now
      FROM locked l, clock
      WHERE r.scheduled_for = l.scheduled_for AND r.id = l.id AND l.has_lookup RETURNING r.id
    ), counted AS (
      SELECT (SELECT count(*) FROM pending)::int AS pending, (SELECT count(*) FROM ended)::int AS ended,
        (SELECT count(*) FROM asked)::int AS asked
    )
    SELECT counted.ended AS ended_runs, asked, pending - counted.ended - asked AS left, ${AFTERMATH} FROM counted, aftermath`,
  );
  if (!row) throw new Error('the statement about pending runs answered no row');
  await aftermathIn(tx, row);
  const { ended_runs: ended, asked, left } = row;
  return { ended, asked, left };
}

export interface RestingSchedules {
  paused: number;
  ended: number;
  inError: number;
}

/** Those that `listDueSchedules` does not list, whatever is due. */
export async function countRestingSchedules(db: Executor): Promise<RestingSchedules> {
  const [row] = await rowsOf<{ paused: number; ended: number; in_error: number }>(
    db,
    sql`SELECT count(*) FILTER (WHERE NOT enabled)::int AS paused,
      count(*) FILTER (WHERE enabled AND error IS NULL AND ${isOver})::int AS ended,
      count(*) FILTER (WHERE enabled AND error IS NOT NULL)::int AS in_error
    FROM schedules`,
  );
  if (!row) throw new Error('the statement about schedules answered no row');
  return { paused: row.paused, ended: row.ended, inError: row.in_error };
}
