import type postgres from 'postgres';
import { type RunStatus, isEnd } from '../../src/core/runs/run.ts';

type Columns = Record<string, unknown>;
type Row = Record<string, postgres.JSONValue | undefined>;

/** Inserts runs as they would have been left, open or ended, as their status says. */
export async function insertRuns(sql: postgres.ISql, rows: readonly Columns[]): Promise<void> {
  // As JSON has them: instants are text.
  const whole = (JSON.parse(JSON.stringify(rows)) as Row[]).map((row): Row => ({ ...FIRST, ...row }));
  const open = whole.filter(({ status }) => !isEnd(status as RunStatus));
  const ended = whole
    .filter((row) => !open.includes(row))
    .map((row) => ({ ...row, finished_at: row['finished_at'] ?? row['updated_at'] }));
  await sql`INSERT INTO runs SELECT (jsonb_populate_record(NULL::runs,
      row || jsonb_build_object('ready', (row->>'due_at')::timestamptz <= clock_timestamp()))).*
    FROM jsonb_array_elements(${sql.json(open)}) AS row`;
  await sql`INSERT INTO history SELECT (jsonb_populate_record(NULL::history,
      row || jsonb_build_object('ended_at', clock_timestamp()))).*
    FROM jsonb_array_elements(${sql.json(ended)}) AS row`;
}

/** Changes columns of a run, open or ended, and moves its row to where its status belongs. Nothing follows from that. */
export async function changeRun(sql: postgres.Sql, id: string, columns: Columns): Promise<void> {
  await sql.begin((tx) => changeRunIn(tx, id, columns));
}

/** The same within a transaction. */
export async function changeRunIn(tx: postgres.TransactionSql, id: string, columns: Columns): Promise<void> {
  const rows = [
    ...(await tx<{ row: Row }[]>`DELETE FROM runs r WHERE id = ${id} RETURNING to_jsonb(r) AS row`),
    ...(await tx<{ row: Row }[]>`DELETE FROM history r WHERE id = ${id} RETURNING to_jsonb(r) AS row`),
  ];
  if (rows.length !== 1) throw new Error(`there are ${rows.length} runs ${id}`);
  await insertRuns(
    tx,
    rows.map(({ row }) => ({ ...row, ...columns })),
  );
}

/** What is not said of a run. */
const FIRST = {
  attempts: 0,
  failures: 0,
  recoveries: 0,
  coalesced: 0,
  lookups: 0,
  overlap_guarded: false,
  has_dependents: false,
  outcome_watched: false,
  observed: false,
};
