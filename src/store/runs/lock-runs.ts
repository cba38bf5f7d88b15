import { type SQL, sql } from 'drizzle-orm';
import type { RunRecord } from '../../core/runs/run-record.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { uuids } from '../../postgres/sql/arrays.ts';
import { onlyColumnOf, rowsOf } from '../../postgres/sql/rows.ts';
import { RECORD_COLUMNS, type RecordRow, toRecord } from './record-columns.ts';

/** How to meet rows that other transactions have locked: pass over them, or wait in line. */
export type MeetingLocks = 'skipLocked' | 'wait';

/** Open runs of these ids, their rows locked until the transaction ends, in the order of ids: the order of all multi-row locks. */
export function lockOpenRuns(
  tx: Transaction,
  ids: readonly string[],
  meeting: MeetingLocks,
): Promise<RunRecord[]> {
  return lockIn(tx, 'runs', ids, meeting);
}

/** The same of runs that have ended. */
export function lockEndedRuns(
  tx: Transaction,
  ids: readonly string[],
  meeting: MeetingLocks,
): Promise<RunRecord[]> {
  return lockIn(tx, 'history', ids, meeting);
}

async function lockIn(
  tx: Transaction,
  table: 'runs' | 'history',
  ids: readonly string[],
  meeting: MeetingLocks,
): Promise<RunRecord[]> {
  if (ids.length === 0) return [];
  const rows = await rowsOf<RecordRow>(tx)(sql`-- lockIn
    SELECT ${RECORD_COLUMNS[table]} FROM ${sql.raw(table)} r WHERE r.id = ANY (${uuids(ids)})
    ORDER BY r.id FOR UPDATE ${skip(meeting)}`);
  return rows.map(toRecord);
}

/**
 * One run, open or ended, its row locked; null: there is none. It asks once more if the run may have moved from one table to the other
 * between the two questions: each question sees the commits before it.
 */
export async function lockRun(tx: Transaction, id: string): Promise<RunRecord | null> {
  for (const lock of [lockOpenRuns, lockEndedRuns, lockOpenRuns, lockEndedRuns]) {
    const [run] = await lock(tx, [id], 'wait');
    if (run) return run;
  }
  return null;
}

/** Which of these runs there are, open or ended, whatever transaction has them locked. */
export async function presentAmong(tx: Transaction, ids: readonly string[]): Promise<ReadonlySet<string>> {
  if (ids.length === 0) return new Set();
  const found = await onlyColumnOf<string>(tx)(sql`-- presentAmong
    SELECT id FROM all_runs WHERE id = ANY (${uuids(ids)})`);
  return new Set(found);
}

/** Which of these runs are open, whatever transaction has them locked. */
export async function openAmong(tx: Transaction, ids: readonly string[]): Promise<ReadonlySet<string>> {
  if (ids.length === 0) return new Set();
  const found = await onlyColumnOf<string>(tx)(sql`-- openAmong
    SELECT id FROM runs WHERE id = ANY (${uuids(ids)})`);
  return new Set(found);
}

function skip(meeting: MeetingLocks): SQL {
  return meeting === 'skipLocked' ? sql`SKIP LOCKED` : sql``;
}
