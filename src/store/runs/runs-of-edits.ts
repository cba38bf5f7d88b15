import { sql } from 'drizzle-orm';
import { uuids } from '../../postgres/sql/arrays.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { databaseNow, onlyColumnOf, rowsOf } from '../../postgres/sql/rows.ts';
import { writeBacklogs } from '../backlogs/backlog-rows.ts';
import { openRunsOf } from './ends/abandon-runs.ts';
import { queueOfLane } from '../../core/runs/run-lane.ts';
import type { RunRecord } from '../../core/runs/run-record.ts';
import { releaseRun } from '../../core/runs/transitions.ts';
import type { Overlap } from '../../core/schedules/schedule.ts';
import { writeOverlapEffects } from '../effects/insert-effects.ts';
import { readInstallation } from '../instances/installation-row.ts';
import { lockOpenRuns, openAmong, saveLockedRuns } from './lock-and-save.ts';

/** A schedule whose open runs count from now on: for `overlap`, or for what is kept of its outcomes. */
interface NewlyMarked {
  uid: string;
  scheduleId: string;
}

/** The most runs of one schedule that an edit marks in its own transaction. */
const MOST_AT_ONCE = 100;

/**
 * Has the open runs of edited schedules count from now on, as the schedules' rows say, which this transaction has locked and written. Of a
 * schedule with more than a hundred they are marked in slices, and count until then as well where that can be seen (guarded-runs.ts).
 * Answers how many backlogs there are to see to.
 */
export async function markOpenRuns(tx: Transaction, schedules: readonly NewlyMarked[]): Promise<number> {
  const open = await openRunsAmong(tx, schedules);
  const later = schedules.filter(({ uid }) => (open.get(uid)?.length ?? 0) > MOST_AT_ONCE);
  const ids = [...open.values()].filter(({ length }) => length <= MOST_AT_ONCE).flat();
  await mark(tx, ids);
  return writeBacklogs(
    tx,
    later.map(({ uid, scheduleId }) => ({ kind: 'marked', uid, scheduleId })),
  );
}

async function openRunsAmong(tx: Transaction, schedules: readonly NewlyMarked[]): Promise<Map<string, string[]>> {
  if (schedules.length === 0) return new Map();
  const rows = await rowsOf<{ uid: string; id: string }>(tx)(sql`-- openRunsAmong
    SELECT u.uid, r.id FROM unnest(${uuids(schedules.map(({ uid }) => uid))}) AS u(uid),
      LATERAL (${openRunsOf(sql`u.uid`, MOST_AT_ONCE + 1)}) AS r`);
  const open = new Map<string, string[]>();
  for (const { uid, id } of rows) open.set(uid, [...(open.get(uid) ?? []), id]);
  return open;
}

/** The same of these runs; `locked`: the first of them that another transaction has locked, before which it stops. */
export async function markLocked(
  tx: Transaction,
  ids: readonly string[],
): Promise<{ marked: number; locked: string | null }> {
  if (ids.length === 0) return { marked: 0, locked: null };
  const named = sql`SELECT id FROM runs WHERE id = ANY (${uuids(ids)}) ORDER BY id`;
  const free = await onlyColumnOf<string>(tx)(sql`-- markLocked
    ${named} FOR NO KEY UPDATE SKIP LOCKED`);
  const isFree = new Set(free);
  const there =
    free.length < ids.length
      ? await onlyColumnOf<string>(tx)(sql`-- markLocked
    ${named}`)
      : [];
  const locked = there.find((id) => !isFree.has(id)) ?? null;
  const before = free.filter((id) => locked === null || id < locked);
  return { marked: await mark(tx, before), locked };
}

/** Runs that maintenance holds count for `overlap` when it is over (`releaseHeldRuns`). */
async function mark(tx: Transaction, ids: readonly string[]): Promise<number> {
  if (ids.length === 0) return 0;
  const marked = await rowsOf(tx)(sql`-- markLocked
    UPDATE runs r SET overlap_guarded = r.overlap_guarded OR open.guarded, outcome_watched = r.outcome_watched OR open.watched
    FROM (
      SELECT o.id, s.outcome_watched AS watched,
        s.overlap <> 'allow' AND NOT o.observed AND NOT EXISTS (SELECT FROM held_runs h WHERE h.run_id = o.id) AS guarded
      FROM runs o JOIN schedules s ON s.uid = o.schedule_uid WHERE o.id = ANY (${uuids(ids)}) ORDER BY o.id FOR NO KEY UPDATE OF o
    ) AS open
    WHERE r.id = open.id AND (open.guarded > r.overlap_guarded OR open.watched > r.outcome_watched) RETURNING r.id`);
  return marked.length;
}

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
  const held = await onlyColumnOf<string>(tx)(sql`-- releaseHeldRuns
    SELECT run_id FROM held_runs ORDER BY run_id LIMIT ${limit} FOR UPDATE SKIP LOCKED`);
  if (held.length === 0 || (await readInstallation(tx)).mode !== 'works') return NOTHING;
  const locked = await lockOpenRuns(tx, held, 'skipLocked');
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
  await forget(tx, held, locked);
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
