import { type SQL, sql } from 'drizzle-orm';
import type { Scope } from '../../core/access/scope.ts';
import type { AlertKind } from '../../core/alerts/alert.ts';
import type { Instant } from '../../core/instant.ts';
import { ALERT_EFFECTS, type EffectKind } from '../../core/runs/effect.ts';
import type { RunStatus, RunTrigger } from '../../core/runs/run.ts';
import type { Executor, Transaction } from '../../postgres/executor.ts';
import { bigints, uuids } from '../../postgres/sql/arrays.ts';
import { NO_SCHEDULE, recordsOf } from '../../postgres/sql/rows.ts';

/** One effect of the end of a run. */
export interface Effect {
  id: number;
  kind: EffectKind;
  /**
   * The run that ended: how, when, and in which attempt. Empty: the effect is about a schedule that is late, and since
   * when.
   */
  runId: string;
  scheduleUid: string;
  scheduleVersion: number;
  /** Null: a one-off run. */
  scheduleId: string | null;
  trigger: RunTrigger;
  /** For `overlap`: the run may not have ended. */
  status: RunStatus | 'late';
  finishedAt: Instant;
  attempt: number;
  /** For `breaks` and `heals`: the kind of the episode. */
  alertKind: AlertKind | null;
  /** For `followers`: the uid of one follower; null: all followers. */
  followerUid: string | null;
  /**
   * It is done in parts, and was begun: for `followers`, all followers up to this uid have been seen to; for `reopens`, all dependents up
   * to this id; for `dependents` this tells nothing more.
   */
  doneThrough: string | null;
  /** For `reopens`: of who asked for it. */
  scope: Scope;
  /** When the end was written. */
  createdAt: Instant;
  failures: number;
}

/** An `Effect`. */
const EFFECT_COLUMNS = sql`id, kind, coalesce(run_id::text, '') AS run_id, schedule_uid, schedule_version,
      nullif(schedule_id, ${NO_SCHEDULE}) AS schedule_id, trigger, status, finished_at, attempt, alert_kind, follower_uid, done_through, scope,
      created_at, failures`;

/** New ones; new ones about alerts; or those that are done in parts, and were begun. */
export type EffectLine = 'new' | 'alerts' | 'begun';

interface EffectsWanted {
  which: EffectLine;
  limit: number;
  /** Ids that are left out. */
  besides: readonly number[];
}

/**
 * Effects that are due now, the oldest first. Locks their rows until the transaction ends. Effects that other instances work on are passed
 * over.
 */
export function lockEffects(tx: Transaction, { which, limit, besides }: EffectsWanted): Promise<Effect[]> {
  return recordsOf<Effect>(tx)(sql`-- lockEffects
    SELECT ${EFFECT_COLUMNS} FROM effects WHERE ${IN_LINE[which]}
      AND coalesce(retry_at <= clock_timestamp(), true) AND id <> ALL (${idsIn(besides)}::bigint[])
    ORDER BY id LIMIT ${limit} FOR UPDATE SKIP LOCKED`);
}

/** In the words of the index of each line. */
const OF_ALERTS = sql.raw(`kind IN (${ALERT_EFFECTS.map((kind) => `'${kind}'`).join(', ')})`);
const IN_LINE: Record<EffectLine, SQL> = {
  new: sql`done_through IS NULL AND NOT ${OF_ALERTS}`,
  alerts: sql`done_through IS NULL AND ${OF_ALERTS}`,
  begun: sql`done_through IS NOT NULL`,
};

/** These effects, where they are still there and no other instance works on them. */
export function lockEffectsAgain(tx: Transaction, ids: readonly number[]): Promise<Effect[]> {
  return recordsOf<Effect>(tx)(sql`-- lockEffectsAgain
    SELECT ${EFFECT_COLUMNS} FROM effects WHERE id = ANY (${idsIn(ids)}::bigint[]) ORDER BY id FOR UPDATE SKIP LOCKED`);
}

export async function deleteEffects(tx: Executor, ids: readonly number[]): Promise<void> {
  if (ids.length === 0) return;
  await tx.execute(sql`-- deleteEffects
    DELETE FROM effects WHERE id = ANY (${idsIn(ids)}::bigint[])`);
}

/** Says how far these effects are done: the others go before them from now on. */
export async function moveBehind(tx: Transaction, begun: readonly Effect[]): Promise<void> {
  if (begun.length === 0) return;
  await tx.execute(sql`-- moveBehind
    UPDATE effects e SET done_through = p.through
    FROM unnest(${bigints(begun.map(({ id }) => id))}, ${uuids(begun.map(({ doneThrough }) => doneThrough))}) AS p(id, through)
    WHERE e.id = p.id`);
}

/** Puts an effect off after it failed. */
export async function putOffEffect(
  db: Executor,
  id: number,
  { error, seconds }: { error: string; seconds: number },
): Promise<void> {
  await db.execute(sql`-- putOffEffect
    UPDATE effects SET failures = least(failures + 1, 30000), error = ${error},
      retry_at = clock_timestamp() + make_interval(secs => ${seconds}) WHERE id = ${id}`);
}

function idsIn(ids: readonly number[]): string {
  return `{${ids.join(',')}}`;
}
