import { sql } from 'drizzle-orm';
import type { Instant } from '../../core/instant.ts';
import { type EffectKind, type EffectOfEnd, effectsOfEnd } from '../../core/runs/effect.ts';
import type { RunStatus } from '../../core/runs/run.ts';
import type { RunRecord } from '../../core/runs/run-record.ts';
import { FIRST_UUID, instants, ints, texts, uuids } from '../../postgres/sql/arrays.ts';
import type { Executor, Transaction } from '../../postgres/executor.ts';
import { onlyColumnOf, recordsOf, rowsOf } from '../../postgres/sql/rows.ts';
import { hasOpenAlert } from '../alerts/alert-effects.ts';
import { isFollowed } from './followers.ts';
import { OVERLAPS } from '../../core/schedules/schedule.ts';
import { hasActive } from '../runs/guarded-runs.ts';
import { type RecordRow, RECORD_COLUMNS, toRecord } from '../runs/record-columns.ts';

interface End {
  from: { status: RunStatus } | null;
  to: RunRecord;
  also?: readonly EffectKind[];
}

/** Writes the effects of these ends, in their transaction. Answers how many it wrote. */
export async function insertEffects(tx: Transaction, ends: readonly End[]): Promise<number> {
  const wanted = ends.flatMap(({ from, to: run, also = [] }) => [
    ...effectsOfEnd(run, from?.status ?? null).map((effect) => ({ ...effect, run })),
    ...also.map((kind) => ({ kind, run })),
  ]);
  return writeEffects(tx, wanted);
}

/**
 * `followers` is written only if some schedule follows at this moment. When the effect is done, it decides which schedules follow and
 * whether they fire. `failing` is written only of schedules that failures pause, and `heals` only where such an episode is open.
 */
export async function writeEffects(
  tx: Transaction,
  wanted: readonly (EffectOfEnd & { run: RunRecord })[],
): Promise<number> {
  if (wanted.length === 0) return 0;
  const runs = wanted.map(({ run }) => run);
  const rows = await rowsOf(tx)(sql`-- writeEffects
    INSERT INTO effects (kind, alert_kind, run_id, schedule_uid, schedule_version, schedule_id, trigger, status, finished_at, attempt)
    SELECT e.kind, e.alert_kind, e.run_id, e.schedule_uid, e.schedule_version, e.schedule_id, e.trigger, e.status, e.finished_at, e.attempt
    FROM unnest(${texts(wanted.map(({ kind }) => kind))}, ${uuids(runs.map(({ id }) => id))},
      ${uuids(runs.map(({ scheduleUid }) => scheduleUid))}, ${ints(runs.map(({ scheduleVersion }) => scheduleVersion))},
      ${texts(runs.map(({ scheduleId }) => scheduleId))}, ${texts(runs.map(({ trigger }) => trigger))},
      ${texts(runs.map(({ status }) => status))}, ${instants(runs.map(({ finishedAt }) => finishedAt))},
      ${ints(runs.map(({ attempts }) => attempts))}, ${texts(wanted.map(({ alertKind = null }) => alertKind))})
      AS e(kind, run_id, schedule_uid, schedule_version, schedule_id, trigger, status, finished_at, attempt, alert_kind)
    WHERE (e.kind <> 'followers' OR ${isFollowed({ uid: sql`e.schedule_uid`, id: sql`e.schedule_id` })})
      AND (e.kind <> 'failing' OR EXISTS (SELECT FROM outcome_watches w
        WHERE w.schedule_uid = e.schedule_uid AND w.pause_after_failures IS NOT NULL))
      AND (e.kind <> 'heals' OR ${hasOpenAlert(sql`e.schedule_uid`, sql`e.alert_kind`)})
    RETURNING id`);
  return rows.length;
}

/**
 * Writes effects that judge the overlaps of these schedules soon, where some run of them waits: the caller could not judge them, or not
 * all of them. Answers how many effects it wrote.
 */
export async function writeOverlapEffects(tx: Transaction, scheduleUids: readonly string[]): Promise<number> {
  if (scheduleUids.length === 0) return 0;
  const rows = await rowsOf(tx)(sql`-- writeOverlapEffects
    INSERT INTO effects (kind, run_id, schedule_uid, schedule_version, schedule_id, trigger, status, finished_at, attempt)
    SELECT 'overlap', r.id, r.schedule_uid, r.schedule_version, r.schedule_id, r.trigger, r.status, r.updated_at, r.attempts
    FROM unnest(${uuids(scheduleUids)}) AS u(uid), LATERAL (
      SELECT * FROM runs WHERE schedule_uid = u.uid AND overlap_guarded AND status = 'waiting' ORDER BY created_at, id LIMIT 1) AS r
    RETURNING id`);
  return rows.length;
}

/** A schedule that has become late, and since when. */
export interface LateSchedule {
  uid: string;
  id: string;
  version: number;
  lateSince: Instant;
}

/** Writes the effects of schedules that have become late, if some schedule follows them. Answers how many it wrote. */
export async function writeLateEffects(tx: Transaction, late: readonly LateSchedule[]): Promise<number> {
  if (late.length === 0) return 0;
  const rows = await rowsOf(tx)(sql`-- writeLateEffects
    INSERT INTO effects (kind, schedule_uid, schedule_version, schedule_id, trigger, status, finished_at, attempt)
    SELECT 'followers', e.uid, e.version, e.id, 'schedule', 'late', e.late_since, 0
    FROM unnest(${uuids(late.map(({ uid }) => uid))}, ${ints(late.map(({ version }) => version))},
      ${texts(late.map(({ id }) => id))}, ${instants(late.map(({ lateSince }) => lateSince))}) AS e(uid, version, id, late_since)
    WHERE ${isFollowed({ uid: sql`e.uid`, id: sql`e.id` })}
    RETURNING id`);
  return rows.length;
}

/** Where the next look at open dependencies goes on. */
export interface EdgeCursor {
  dependsOn: string;
  runId: string;
}

export const FIRST_EDGE: EdgeCursor = { dependsOn: FIRST_UUID, runId: FIRST_UUID };

/**
 * Writes the missing effect if a run waits for a dependency that has ended. Another program may have deleted that effect. A pass looks at
 * some of all open dependencies, since in a healthy installation it finds nothing. An end writes its effect in one commit; the effect
 * counts its dependencies and is deleted in one commit. So one statement, which sees one moment, finds missing effects and none that are
 * under way. Answers how many effects it wrote.
 */
export async function effectsForOverlooked(
  tx: Transaction,
  after: EdgeCursor,
  limit: number,
): Promise<{ found: number; next: EdgeCursor | null }> {
  const edges = await recordsOf<EdgeCursor & { overlooked: boolean }>(tx)(sql`-- effectsForOverlooked
    SELECT d.depends_on, d.run_id,
      NOT EXISTS (SELECT FROM runs r WHERE r.id = d.depends_on) AND EXISTS (SELECT FROM history r WHERE r.id = d.depends_on)
        AND NOT EXISTS (SELECT FROM effects e WHERE e.run_id = d.depends_on AND e.kind = 'dependents') AS overlooked
    FROM run_dependencies d
    WHERE d.counted_at IS NULL AND (d.depends_on, d.run_id) > (${after.dependsOn}::uuid, ${after.runId}::uuid)
    ORDER BY d.depends_on, d.run_id LIMIT ${limit}`);
  const last = edges.length === limit ? edges.at(-1) : undefined;
  const next = last ? { dependsOn: last.dependsOn, runId: last.runId } : null;
  const overlooked = edges.filter((edge) => edge.overlooked).map(({ dependsOn }) => dependsOn);
  if (overlooked.length === 0) return { found: 0, next };
  const ended = await rowsOf<RecordRow>(tx)(sql`-- effectsForOverlooked
    SELECT ${RECORD_COLUMNS.history} FROM history r WHERE r.id = ANY (${uuids([...new Set(overlooked)])})`);
  const wanted = ended.map((row) => ({ kind: 'dependents' as const, run: toRecord(row) }));
  return { found: await writeEffects(tx, wanted), next };
}

/**
 * Schedules with runs that wait for nothing, for example since another program deleted an effect. They must be judged. Rows of the last
 * moments are left out, since they may still be under way. An `overlap` that only a newer version knows is left to that version.
 */
export async function findWaitingInVain(db: Executor, limit: number): Promise<string[]> {
  return onlyColumnOf<string>(db)(sql`-- findWaitingInVain
    SELECT DISTINCT w.schedule_uid AS uid FROM runs w JOIN schedules s ON s.uid = w.schedule_uid
    WHERE w.status = 'waiting' AND w.overlap_guarded
      AND w.updated_at < (SELECT clock_timestamp() - make_interval(secs => ${UNDER_WAY_SECONDS}))
      AND NOT EXISTS (SELECT FROM effects e WHERE e.schedule_uid = w.schedule_uid AND e.kind = 'overlap')
      AND NOT EXISTS (SELECT FROM backlogs b WHERE b.schedule_uid = w.schedule_uid AND b.kind = 'marked')
      AND s.overlap = ANY (${texts(OVERLAPS)}) AND (s.overlap <> 'queue'
        OR NOT ${hasActive(sql`w.schedule_uid`)}
        OR EXISTS (SELECT FROM runs other WHERE other.schedule_uid = w.schedule_uid AND other.overlap_guarded
          AND other.status = 'waiting' AND other.id <> w.id))
    LIMIT ${limit}`);
}

const UNDER_WAY_SECONDS = 2;
