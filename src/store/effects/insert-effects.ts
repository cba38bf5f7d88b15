import { sql } from 'drizzle-orm';
import type { Instant } from '../../core/instant.ts';
import { type EffectKind, type EffectOfEnd, effectsOfEnd } from '../../core/runs/effect.ts';
import type { RunStatus } from '../../core/runs/run.ts';
import type { RunRecord } from '../../core/runs/run-record.ts';
import { instants, ints, texts, uuids } from '../../postgres/sql/arrays.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { rowsOf } from '../../postgres/sql/rows.ts';
import { hasOpenAlert } from '../alerts/alert-effects.ts';
import { isFollowed } from './followers.ts';

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
