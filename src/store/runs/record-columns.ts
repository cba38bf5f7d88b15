import { type SQL, getTableColumns, sql } from 'drizzle-orm';
import type { RunRecord } from '../../core/runs/run-record.ts';
import { history, runs } from '../../postgres/schema.ts';

/** Which of the two tables a record's row stands in. */
export type RunTable = 'runs' | 'history';

/** Columns of a record that each table has, under their names in TypeScript. */
const OF_RUNS = Object.entries(getTableColumns(runs)).filter(([key]) => key !== 'ready');
const OF_HISTORY = Object.entries(getTableColumns(history)).filter(([key]) => key !== 'endedAt');

const KEYS_OF_RUNS = new Set(OF_RUNS.map(([key]) => key));
const KEYS_OF_HISTORY = new Set(OF_HISTORY.map(([key]) => key));
/** What only an open run has stands behind what an ended one has. */
const ALL = [...OF_HISTORY, ...OF_RUNS.filter(([key]) => !KEYS_OF_HISTORY.has(key))];

/** For a SELECT that toRecord reads, in the same order for each table. What only the other table has is null. */
export const RECORD_COLUMNS: Record<RunTable | 'all_runs', SQL> = {
  runs: readFrom(KEYS_OF_RUNS),
  history: readFrom(KEYS_OF_HISTORY),
  all_runs: readFrom(KEYS_OF_HISTORY),
};

function readFrom(keys: ReadonlySet<string>): SQL {
  const columns = ALL.map(([key, column]) =>
    keys.has(key) ? `r.${column.name}` : `NULL::${column.getSQLType()} AS ${column.name}`,
  );
  return sql.raw(columns.join(', '));
}

/** Column lists of an INSERT or UPDATE whose values come from `recordset`. */
export const WRITTEN_COLUMNS: Record<RunTable, SQL> = {
  runs: sql.raw(namesOf(OF_RUNS)),
  history: sql.raw(namesOf(OF_HISTORY)),
};

/** Of an INSERT INTO history that takes its values from a row of `runs`, but for those given: SQL by the column's name. */
export const endedColumns = {
  names: sql.raw(`${namesOf(OF_HISTORY)}, ended_at`),
  valuesOf: (row: string, given: Record<string, string>): SQL =>
    sql.raw(
      [...OF_HISTORY.map(([, { name }]) => name), 'ended_at'].map((name) => given[name] ?? `${row}.${name}`).join(', '),
    ),
};

function namesOf(columns: readonly [string, { name: string }][], alias?: string): string {
  return columns.map(([, { name }]) => (alias === undefined ? name : `${alias}.${name}`)).join(', ');
}

export type RecordRow = Record<string, unknown>;

/** A row of RECORD_COLUMNS as the driver hands it over. */
export function toRecord(row: RecordRow): RunRecord {
  const record: Record<string, unknown> = {};
  for (const [key, column] of ALL) {
    const value = row[column.name];
    record[key] = value === null || value === undefined ? null : column.mapFromDriverValue(value);
  }
  return record as unknown as RunRecord;
}

/** Records as one JSON array, for `jsonb_populate_recordset`: one parameter, however many columns and rows. */
export function recordset(records: readonly RunRecord[]): SQL {
  return sql`${JSON.stringify(records.map(toJson))}::jsonb`;
}

function toJson(record: RunRecord): Record<string, unknown> {
  const values = record as unknown as Record<string, unknown>;
  return Object.fromEntries(ALL.map(([key, { name }]) => [name, inJson(name, values[key])]));
}

const INSTANTS = new Set(
  ALL.flatMap(([, column]) => (column.getSQLType().startsWith('timestamp') ? [column.name] : [])),
);

function inJson(name: string, value: unknown): unknown {
  return typeof value === 'number' && INSTANTS.has(name) ? new Date(value).toISOString() : value;
}

/** What a run takes from its schedule (`OfSchedule`), of the row `s`. */
export const OF_SCHEDULE = sql`s.uid AS schedule_uid, s.version AS schedule_version, s.id AS schedule_id, s.lane, s.priority, s.limit_id,
  s.overlap <> 'allow' AS overlap_guarded, s.outcome_watched, s.expires_after_seconds`;
