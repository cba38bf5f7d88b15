import { type SQL, sql } from 'drizzle-orm';
import { expireWaiting, hasExpired } from '../../core/runs/expire-run.ts';
import type { Executor, Transaction } from '../../postgres/executor.ts';
import { uuids } from '../../postgres/sql/arrays.ts';
import { databaseNow, onlyColumnOf } from '../../postgres/sql/rows.ts';
import { loadRunFacts } from './claims/run-facts.ts';
import { type RunChange, lockOpenRuns, saveLockedRuns } from './lock-and-save.ts';

/** Of a run that is recorded: how long it may wait, and until when. */
export const EXPIRY_COLUMNS = sql`expires_after_seconds, begin_by`;

/** Their values for a run that is recorded now, from a row of that name with the columns of its schedule: `newRun` in SQL. */
export function recordedExpiry(row: SQL, dueAt: SQL): SQL {
  return sql`${row}.expires_after_seconds, ${beginBy(row, dueAt)}`;
}

export function beginBy(row: SQL, dueAt: SQL): SQL {
  return sql`${dueAt} + make_interval(secs => ${row}.expires_after_seconds)`;
}

/** In every statement that claims or admits runs: whether one may still begin at `clock.now`. */
export const MAY_BEGIN = sql`(begin_by <= (SELECT now FROM clock)) IS NOT TRUE`;

/** Ids of runs that have waited too long, the longest ago first. */
export async function findExpired(
  db: Executor,
  { limit, besides }: { limit: number; besides: readonly string[] },
): Promise<string[]> {
  return onlyColumnOf<string>(db)(sql`-- findExpired
    SELECT id FROM runs WHERE begin_by IS NOT NULL AND claimed_by IS NULL AND status <> 'running'
      AND begin_by <= (SELECT clock_timestamp()) AND id <> ALL (${uuids(besides)}) ORDER BY begin_by LIMIT ${limit}`);
}

/** Ends those of these runs that still wait. Rows that other transactions have locked are passed over: they may be being claimed. */
export async function endIfExpired(
  tx: Transaction,
  ids: readonly string[],
): Promise<{ changes: readonly RunChange[]; effects: number }> {
  const locked = await lockOpenRuns(tx, ids, 'skipLocked');
  const now = await databaseNow(tx);
  const expired = locked.filter((run) => hasExpired(run, now));
  const inDoubt = expired.filter(({ inDoubtUntil }) => inDoubtUntil !== null);
  const facts = inDoubt.length > 0 ? await loadRunFacts(tx, inDoubt) : null;
  const changes = expired.map((from) => {
    const atMostOnce = from.inDoubtUntil !== null && facts?.of(from).atMostOnce === true;
    return { from, to: expireWaiting(from, { atMostOnce }, now) };
  });
  return { changes, effects: await saveLockedRuns(tx, changes) };
}
