import { type SQL, sql } from 'drizzle-orm';
import type { Report } from '../../../core/runs/observed-report.ts';
import type { RunRecord } from '../../../core/runs/run-record.ts';
import type { Transaction } from '../../../postgres/executor.ts';
import { rowsOf } from '../../../postgres/sql/rows.ts';
import { RECORD_COLUMNS, type RecordRow, toRecord } from '../record-columns.ts';

const FREE = sql`r.observed AND r.execution_id IS NULL`;

/**
 * The open runs that decide which one a report is for (`matchReport`): of each rule the first, by an index of its own. The schedule's row
 * is locked, so no other report takes one of them; they may still expire, or be cancelled.
 */
export async function openFor(tx: Transaction, uid: string, { kind, rid }: Report): Promise<RunRecord[]> {
  const first = (status: 'pending' | 'running') => sql`(SELECT ${RECORD_COLUMNS.runs} FROM runs r
      WHERE r.schedule_uid = ${uid} AND ${FREE} AND r.status = ${status} ORDER BY r.id LIMIT 1)`;
  const parts = [
    ...(rid === null ? [] : [ofRid('runs', uid, rid)]),
    first('pending'),
    ...(kind === 'start' ? [] : [first('running')]),
  ];
  const rows = await rowsOf<RecordRow>(tx)(sql`-- openFor
    ${oneAfterAnother(parts)}`);
  return rows.map(toRecord);
}

/** Those that have ended: each day of history is asked, so only where none that is open decides. */
export async function endedFor(tx: Transaction, uid: string, { kind, rid }: Report): Promise<RunRecord[]> {
  const expired = sql`(SELECT ${RECORD_COLUMNS.history} FROM history r
      WHERE r.schedule_uid = ${uid} AND ${FREE} AND r.status = 'failed' AND r.error->>'kind' = 'expired' ORDER BY r.id DESC LIMIT 1)`;
  const parts = [
    ...(rid === null ? [] : [ofRid('history', uid, rid)]),
    ...(kind === 'success' || kind === 'failure' ? [expired] : []),
  ];
  if (parts.length === 0) return [];
  const rows = await rowsOf<RecordRow>(tx)(sql`-- endedFor
    ${oneAfterAnother(parts)}`);
  return rows.map(toRecord);
}

function ofRid(table: 'runs' | 'history', uid: string, rid: string): SQL {
  return sql`(SELECT ${RECORD_COLUMNS[table]} FROM ${sql.raw(table)} r
      WHERE r.schedule_uid = ${uid} AND r.observed AND r.execution_id = ${rid} LIMIT 1)`;
}

function oneAfterAnother(parts: SQL[]): SQL {
  return sql.join(parts, sql` UNION ALL `);
}
