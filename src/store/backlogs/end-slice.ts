import { type SQL, sql } from 'drizzle-orm';
import { instants, uuids } from '../../postgres/sql/arrays.ts';
import { databaseNow } from '../../postgres/sql/database-now.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { rowsOf } from '../../postgres/sql/rows.ts';
import { writeOverlapEffects } from '../effects/insert-effects.ts';
import { abandonedAsDeleted, openRunsOf } from '../runs/ends/abandon-runs.ts';
import { IS_REPLACEABLE, isReplaceable } from '../runs/guarded-runs.ts';
import { lockOpenRuns } from '../runs/lock-runs.ts';
import { replacedBy } from '../runs/overlaps.ts';
import { saveLockedRuns } from '../runs/save-runs.ts';
import type { Backlog } from './backlog-rows.ts';
import type { Slice, SliceSize } from './slice.ts';

/**
 * Ends the next open runs of a backlog: abandons those of a deleted schedule, cancels those that a newer run has replaced. Rows that other
 * transactions have locked are left for another slice.
 */
export async function endSlice(
  tx: Transaction,
  backlog: Backlog,
  { limit, besides, noteRuns }: SliceSize,
): Promise<Slice> {
  const { kind, scheduleUid, position } = backlog;
  const found = await rowsOf<{ id: string }>(
    tx,
    sql`${kind === 'deleted' ? openRunsOf(scheduleUid, limit + besides.length) : replaceableOf(backlog, limit + besides.length)}`,
  );
  const ids = found
    .map(({ id }) => id)
    .filter((id) => !besides.includes(id))
    .slice(0, limit);
  noteRuns(ids);
  const locked = await lockOpenRuns(tx, ids, 'skipLocked');
  const now = await databaseNow(tx);
  const changes =
    kind === 'deleted'
      ? locked.map((run) => abandonedAsDeleted(run, now))
      : locked.filter(isReplaceable).map((run) => replacedBy(run, now));
  const saved = await saveLockedRuns(tx, changes);
  // What is waiting may start once nothing is active: these ends cause no judgement of their own.
  const judged = kind === 'replaced' ? await writeOverlapEffects(tx, [scheduleUid]) : 0;
  const stays = found.length > ids.length || locked.length < ids.length || besides.length > 0;
  return {
    changed: changes.length,
    effects: saved + judged,
    toAdmit: locked.some(({ limitId }) => limitId !== null),
    position,
    isDone: !stays && ids.length < limit && !(kind === 'replaced' && (await isBeingMarked(tx, scheduleUid))),
    isHeldUp: changes.length === 0,
  };
}

/** The oldest first. */
function replaceableOf({ scheduleUid, askedAt, keptRun }: Backlog, limit: number): SQL {
  return sql`SELECT id FROM runs WHERE schedule_uid = ${scheduleUid} AND ${IS_REPLACEABLE}
    AND created_at <= (${instants([askedAt])})[1] AND id <> (${uuids([keptRun])})[1]
    ORDER BY created_at, id LIMIT ${limit}`;
}

/** Runs of it that are not marked yet may have to give way as well. */
async function isBeingMarked(tx: Transaction, scheduleUid: string): Promise<boolean> {
  const rows = await rowsOf(
    tx,
    sql`SELECT FROM backlogs WHERE schedule_uid = ${scheduleUid} AND kind = 'marked' LIMIT 1`,
  );
  return rows.length > 0;
}
