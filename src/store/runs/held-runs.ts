import { sql } from 'drizzle-orm';
import { queueOfLane } from '../../core/runs/run-lane.ts';
import type { RunRecord } from '../../core/runs/run-record.ts';
import { releaseRun } from '../../core/runs/transitions.ts';
import type { Overlap } from '../../core/schedules/schedule.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { uuids } from '../../postgres/sql/arrays.ts';
import { databaseNow, onlyColumnOf, rowsOf } from '../../postgres/sql/rows.ts';
import { writeOverlapEffects } from '../effects/insert-effects.ts';
import { readInstallation } from '../instances/installation-row.ts';
import { lockOpenRuns, openAmong, saveLockedRuns } from './lock-and-save.ts';

/** Keeps waiting runs, recorded in this transaction, until maintenance is over. */
export async function holdRuns(tx: Transaction, runIds: readonly string[]): Promise<void> {
  if (runIds.length === 0) return;
  await tx.execute(sql`-- holdRuns
    INSERT INTO held_runs (run_id) SELECT unnest(${uuids(runIds)}) ON CONFLICT DO NOTHING`);
}

interface ReleasedRuns {
  /** How many held runs were checked. */
  found: number;
  /** How many of them go on, and whether workers may pull some of them. */
  released: number;
  toPull: boolean;
  effects: number;
}

const NOTHING: ReleasedRuns = { found: 0, released: 0, toPull: false, effects: 0 };

/**
 * Lets held runs go on if no maintenance is in force. Those of schedules whose runs must not overlap go on waiting, for an effect to
 * judge them. Runs that another transaction has locked are left for the next call.
 */
export async function releaseHeldRuns(tx: Transaction, limit: number): Promise<ReleasedRuns> {
  const held = await rowsOf<{ id: string }>(tx)(sql`-- releaseHeldRuns
    SELECT run_id AS id FROM held_runs ORDER BY run_id LIMIT ${limit} FOR UPDATE SKIP LOCKED`);
  if (held.length === 0 || (await readInstallation(tx)).mode !== 'works') return NOTHING;
  const ids = held.map(({ id }) => id);
  const locked = await lockOpenRuns(tx, ids, 'skipLocked');
  // A run that has been cancelled, or abandoned with its schedule, is no longer held.
  const waiting = locked.filter(({ status }) => status === 'waiting');
  const guarded = await guardedAmong(tx, waiting);
  const now = await databaseNow(tx);
  const changes = waiting.map((from) => ({
    from,
    to: guarded.has(from.scheduleUid) ? { ...from, overlapGuarded: true } : releaseRun(from, now),
  }));
  const saved = await saveLockedRuns(tx, changes);
  const judged = await writeOverlapEffects(tx, [...guarded]);
  await forget(tx, ids, locked);
  return {
    found: held.length,
    released: waiting.length,
    toPull: waiting.some(({ lane }) => queueOfLane(lane) !== null),
    effects: saved + judged,
  };
}

/** The uids of these runs' schedules, if their runs must not overlap. */
async function guardedAmong(tx: Transaction, runs: readonly RunRecord[]): Promise<ReadonlySet<string>> {
  const found = await onlyColumnOf<string>(tx)(sql`-- guardedAmong
    SELECT uid FROM schedules
    WHERE uid = ANY (${uuids(runs.map(({ scheduleUid }) => scheduleUid))}) AND overlap <> ${'allow' satisfies Overlap}`);
  return new Set(found);
}

/** All except open runs that could not be locked. */
async function forget(tx: Transaction, ids: readonly string[], locked: readonly RunRecord[]): Promise<void> {
  const had = new Set(locked.map(({ id }) => id));
  const others = ids.filter((id) => !had.has(id));
  const open = await openAmong(tx, others);
  const done = ids.filter((id) => !open.has(id));
  await tx.execute(sql`-- forget
    DELETE FROM held_runs WHERE run_id = ANY (${uuids(done)})`);
}
