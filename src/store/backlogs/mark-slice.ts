import { sql } from 'drizzle-orm';
import { uuids } from '../../postgres/sql/arrays.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { rowsOf } from '../../postgres/sql/rows.ts';
import { writeOverlapEffects } from '../effects/insert-effects.ts';
import { markLocked } from '../runs/mark-runs.ts';
import type { Backlog } from './backlog-rows.ts';
import type { Slice, SliceSize } from './slice.ts';

/**
 * Marks the open runs of edited schedules among the next of all open runs, in the order of ids: so each is looked at once, however many
 * schedules are to be marked. A run that is recorded meanwhile is recorded by the edited definition. Before a row that another transaction
 * has locked it stops, and comes back to it.
 */
export async function markSlice(
  tx: Transaction,
  backlogs: readonly Backlog[],
  { limit, besides, noteRuns }: SliceSize,
): Promise<Slice> {
  const uids = backlogs.map(({ scheduleUid }) => scheduleUid);
  const from = backlogs[0]?.position ?? FIRST_ID;
  const visited = await rowsOf<{ id: string; of_these: boolean }>(
    tx,
    sql`SELECT id, schedule_uid = ANY (${uuids(uids)}) AS of_these FROM runs WHERE id > ${from}::uuid ORDER BY id LIMIT ${limit}`,
  );
  const ids = visited.filter(({ id, of_these: isOne }) => isOne && !besides.includes(id)).map(({ id }) => id);
  noteRuns(ids);
  const { marked, held } = await markLocked(tx, ids);
  const reached = held === null ? visited.at(-1)?.id : visited.findLast(({ id }) => id < held)?.id;
  const isDone = held === null && visited.length < limit;
  return {
    changed: marked,
    effects: isDone ? await writeOverlapEffects(tx, uids) : 0,
    toAdmit: false,
    position: reached ?? backlogs[0]?.position ?? null,
    isDone,
    isHeldUp: held !== null,
  };
}

const FIRST_ID = '00000000-0000-0000-0000-000000000000';
