import { sql } from 'drizzle-orm';
import { uuids } from '../../../postgres/sql/arrays.ts';
import type { Executor } from '../../../postgres/executor.ts';
import { rowsOf } from '../../../postgres/sql/rows.ts';

/**
 * Takes the row locks of schedules under which their overlaps are decided, unless another transaction has them. A separate statement
 * before the one that decides: in READ COMMITTED, a statement that has waited for a row lock still sees everything else as it was before
 * it waited. A schedule in neither answer is gone.
 */
export async function lockFreeSchedules(
  tx: Executor,
  uids: readonly string[],
): Promise<{ free: string[]; locked: string[] }> {
  if (uids.length === 0) return { free: [], locked: [] };
  const named = sql`SELECT uid FROM schedules WHERE uid = ANY (${uuids(uids)})`;
  const rows = await rowsOf<{ uid: string }>(tx)(sql`-- lockFreeSchedules
    ${named} ORDER BY uid FOR NO KEY UPDATE SKIP LOCKED`);
  const free = new Set(rows.map((row) => row.uid));
  const there =
    free.size === uids.length
      ? []
      : await rowsOf<{ uid: string }>(tx)(sql`-- lockFreeSchedules
    ${named}`);
  return { free: [...free], locked: there.map((row) => row.uid).filter((uid) => !free.has(uid)) };
}
