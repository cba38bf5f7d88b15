import { sql } from 'drizzle-orm';
import type { Report } from '../../../core/runs/observed/match-report.ts';
import type { RunRecord } from '../../../core/runs/run-record.ts';
import type { Transaction } from '../../../postgres/executor.ts';
import { rowsOf } from '../../../postgres/sql/rows.ts';
import { RECORD_COLUMNS, type RecordRow, toRecord } from '../record-columns.ts';

const FREE = sql`r.observed AND r.execution_id IS NULL`;

/**
 * The runs that decide which one a report is for (`matchReport`): of each rule the first, by an index of its own. The schedule's row is
 * locked, so no other report takes one of them; they may still expire, or be cancelled.
 */
export async function candidatesFor(
  tx: Transaction,
  uid: string,
  { kind, rid }: Report,
): Promise<RunRecord[]> {
  const isEndReport = kind === 'success' || kind === 'failure';
  const first = (status: 'pending' | 'running') => sql`(SELECT ${RECORD_COLUMNS.runs} FROM runs r
      WHERE r.schedule_uid = ${uid} AND ${FREE} AND r.status = ${status} ORDER BY r.id LIMIT 1)`;
  const parts = [
    ...(rid === null ? [] : [ofRid('runs', uid, rid), ofRid('history', uid, rid)]),
    first('pending'),
    ...(kind === 'start' ? [] : [first('running')]),
    ...(isEndReport
      ? [
          sql`(SELECT ${RECORD_COLUMNS.history} FROM history r
      WHERE r.schedule_uid = ${uid} AND ${FREE} AND r.status = 'failed' AND r.error->>'kind' = 'expired' ORDER BY r.id DESC LIMIT 1)`,
        ]
      : []),
  ];
  const rows = await rowsOf<RecordRow>(tx)(sql`-- candidatesFor
    ${sql.join(parts, sql` UNION ALL `)}`);
  return rows.map(toRecord);
}

function ofRid(table: 'runs' | 'history', uid: string, rid: string) {
  return sql`(SELECT ${RECORD_COLUMNS[table]} FROM ${sql.raw(table)} r
      WHERE r.schedule_uid = ${uid} AND r.observed AND r.execution_id = ${rid} LIMIT 1)`;
}
