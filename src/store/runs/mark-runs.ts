import { sql } from 'drizzle-orm';
import { uuids } from '../../postgres/sql/arrays.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { rowsOf } from '../../postgres/sql/rows.ts';
import { writeBacklogs } from '../backlogs/backlog-rows.ts';
import { openRunsOf } from './ends/abandon-runs.ts';

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
  const open = await openAmong(tx, schedules);
  const later = schedules.filter(({ uid }) => (open.get(uid)?.length ?? 0) > MOST_AT_ONCE);
  const ids = [...open.values()].filter(({ length }) => length <= MOST_AT_ONCE).flat();
  await mark(tx, ids);
  return writeBacklogs(
    tx,
    later.map(({ uid, scheduleId }) => ({ kind: 'marked', uid, scheduleId })),
  );
}

async function openAmong(tx: Transaction, schedules: readonly NewlyMarked[]): Promise<Map<string, string[]>> {
  if (schedules.length === 0) return new Map();
  const rows = await rowsOf<{ uid: string; id: string }>(tx)(sql`-- openAmong
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
  const free = await rowsOf<{ id: string }>(tx)(sql`-- markLocked
    ${named} FOR NO KEY UPDATE SKIP LOCKED`);
  const isFree = new Set(free.map(({ id }) => id));
  const there =
    free.length < ids.length
      ? await rowsOf<{ id: string }>(tx)(sql`-- markLocked
    ${named}`)
      : [];
  const locked = there.find(({ id }) => !isFree.has(id))?.id ?? null;
  const before = [...isFree].filter((id) => locked === null || id < locked);
  return { marked: await mark(tx, before), locked };
}

/** Runs that maintenance holds count for `overlap` when it is over (store/runs/held-runs.ts). */
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
