import { sql } from 'drizzle-orm';
import type { RunStatus } from '../../../core/runs/run.ts';
import type { Bound } from '../../../core/schedules/expect.ts';
import type { Executor, Transaction } from '../../../postgres/executor.ts';
import { uuids } from '../../../postgres/sql/arrays.ts';
import { type InstantText, onlyColumnOf, rowsOf, toInstant } from '../../../postgres/sql/rows.ts';
import { BEFORE_BEGINNING, causesOfBeginnings, setBegun } from './bound-columns.ts';
import { type JudgedRun, writeBoundEffects } from './bound-effects.ts';

/** What was done in time may be written a moment later. */
const ALLOWANCE_SECONDS = 1;
const PASSED = sql`bound_at IS NOT NULL AND bound_at < (SELECT clock_timestamp() - make_interval(secs => ${ALLOWANCE_SECONDS}))`;

/** Ids of open runs of which a bound has passed, the longest ago first. */
export async function findPassedBounds(
  db: Executor,
  { limit, besides }: { limit: number; besides: readonly string[] },
): Promise<string[]> {
  return onlyColumnOf<string>(db)(sql`-- findPassedBounds
    SELECT id FROM runs WHERE ${PASSED} AND id <> ALL (${uuids(besides)}) ORDER BY bound_at LIMIT ${limit}`);
}

interface PassedRow {
  id: string;
  status: RunStatus;
  schedule_uid: string;
  schedule_version: number;
  schedule_id: string;
  bound: Bound;
  passed_at: InstantText;
}

/**
 * Judges these runs, where a bound has still passed: it did not hold, whatever the run does from now on. Rows that other transactions have
 * locked are passed over: the next look finds them, or their run begins or ends, which judges them too. Answers how many effects it wrote.
 */
export async function judgePassedBounds(tx: Transaction, ids: readonly string[]): Promise<number> {
  const rows = await rowsOf<PassedRow>(tx)(sql`-- judgePassedBounds
    WITH passed AS MATERIALIZED (
      SELECT id, next_bound, bound_at FROM runs WHERE id = ANY (${uuids(ids)}) AND ${PASSED} ORDER BY id FOR UPDATE SKIP LOCKED
    )
    UPDATE runs r SET unmet = array_append(r.unmet, passed.next_bound), next_bound = NULL, bound_at = NULL, updated_at = clock_timestamp()
    FROM passed WHERE r.id = passed.id
    RETURNING r.id, r.status, r.schedule_uid, r.schedule_version, r.schedule_id, passed.next_bound AS bound, passed.bound_at AS passed_at`);
  return writeBoundEffects(tx, rows.map(judgedRun));
}

function judgedRun(row: PassedRow): JudgedRun {
  const { id, status, schedule_uid: scheduleUid, schedule_version: scheduleVersion } = row;
  return {
    run: { id, status, scheduleUid, scheduleVersion, scheduleId: row.schedule_id },
    verdict: { bound: row.bound, isKept: false, at: toInstant(row.passed_at) },
  };
}

/** Judges runs that this transaction has claimed for workers: an attempt of each began with its claim. */
export async function judgeBegunUnderLock(tx: Transaction, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await tx.execute(sql`-- judgeBegunUnderLock
    WITH begun AS MATERIALIZED (SELECT ${BEFORE_BEGINNING}, r.claimed_at FROM runs r WHERE r.id = ANY (${uuids(ids)})),
    judged AS (${causesOfBeginnings(sql`begun b`, sql`b.claimed_at`)})
    UPDATE runs r SET ${setBegun(sql`r.claimed_at`)} FROM begun WHERE r.id = begun.id`);
}
