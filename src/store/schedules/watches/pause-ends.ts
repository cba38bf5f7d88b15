import { sql } from 'drizzle-orm';
import type { Schedule } from '../../../core/schedules/schedule.ts';
import type { Executor, Transaction } from '../../../postgres/executor.ts';
import { ints, texts, uuids } from '../../../postgres/sql/arrays.ts';
import { onlyColumnOf, rowsOf } from '../../../postgres/sql/rows.ts';

export interface EndedPause {
  uid: string;
  scheduleId: string;
}

interface PauseEnds {
  /** Schedules whose pause is over, the first of them. */
  ended: EndedPause[];
  /** How long until the next pause ends; null: none will. */
  nextInMs: number | null;
}

/** Reads the first rows of an index that only contains pauses with an end. */
export async function findEndedPauses(
  db: Executor,
  { limit, besides }: { limit: number; besides: readonly string[] },
): Promise<PauseEnds> {
  const rows = await rowsOf<{ uid: string | null; id: string; next_in_ms: number | null }>(
    db,
  )(sql`-- findEndedPauses
    WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now)
    SELECT ended.uid, ended.id, extract(epoch FROM (SELECT min(pause_until) FROM schedules
        WHERE pause_until IS NOT NULL AND pause_until > (SELECT now FROM clock) AND pause_until < 'infinity')
        - clock.now)::float8 * 1000 AS next_in_ms
    FROM clock LEFT JOIN (
      SELECT uid, id FROM schedules WHERE pause_until IS NOT NULL AND pause_until <= (SELECT now FROM clock)
        AND uid <> ALL (${uuids(besides)}) ORDER BY pause_until LIMIT ${limit}) AS ended ON true`);
  return {
    ended: rows.flatMap(({ uid, id }) => (uid === null ? [] : [{ uid, scheduleId: id }])),
    nextInMs: rows[0]?.next_in_ms ?? null,
  };
}

/** Locks those of them whose pause is over and that no other transaction has locked; answers their ids. */
export async function lockEndedPauses(tx: Transaction, ended: readonly EndedPause[]): Promise<string[]> {
  return onlyColumnOf<string>(tx)(sql`-- lockEndedPauses
    SELECT id FROM schedules WHERE uid = ANY (${uuids(ended.map(({ uid }) => uid))}) AND pause_until <= (SELECT clock_timestamp())
    ORDER BY uid FOR NO KEY UPDATE SKIP LOCKED`);
}

/** Says of paused schedules why they could not be enabled, where they are still of that version. */
export async function sayWhyStillPaused(
  db: Executor,
  paused: readonly { schedule: Pick<Schedule, 'uid' | 'version'>; error: string }[],
): Promise<void> {
  if (paused.length === 0) return;
  await db.execute(sql`-- sayWhyStillPaused
    UPDATE schedules s SET error = a.error
    FROM unnest(${uuids(paused.map(({ schedule }) => schedule.uid))}, ${ints(paused.map(({ schedule }) => schedule.version))},
      ${texts(paused.map(({ error }) => error))}) AS a(uid, version, error)
    WHERE s.uid = a.uid AND s.version = a.version AND NOT s.enabled AND s.error IS DISTINCT FROM a.error`);
}
