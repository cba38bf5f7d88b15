import { type SQL, sql } from 'drizzle-orm';
import { type Instant, isoInstant } from '../../core/instant.ts';

/**
 * Batches go to the database as one array per column, unnested there: one statement for a batch of any size, and no
 * text to parse as JSON. A column without values goes as an empty array: unnested beside the others it gives nulls, and
 * costs nothing. So at least one column must have a value in each row: the ids.
 */
export const uuids = (values: readonly (string | null)[]): SQL => sql`${plain(values)}::uuid[]`;
export const ints = (values: readonly (number | null)[]): SQL => sql`${plain(values)}::int[]`;
export const bigints = (values: readonly (number | null)[]): SQL => sql`${plain(values)}::bigint[]`;
export const doubles = (values: readonly (number | null)[]): SQL => sql`${plain(values)}::float8[]`;
export const booleans = (values: readonly (boolean | null)[]): SQL => sql`${plain(values)}::boolean[]`;
/** Any text, quoted. */
export const texts = (values: readonly (string | null)[]): SQL =>
  sql`${plain(values.map((value) => (value === null ? null : quoted(value))))}::text[]`;

export const instants = (values: readonly (Instant | null)[]): SQL =>
  sql`${plain(values.map((at) => (at === null ? null : isoInstant(at))))}::timestamptz[]`;

/**
 * True for the rows of these ids. The planner does not look into the array: else it would estimate each of a thousand ids by the statistics
 * of each day of history, and that takes longer than to read them.
 */
export const hasOneOfIds = (column: SQL, ids: readonly string[]): SQL =>
  sql`${column} = ANY (ARRAY(SELECT unnest(${uuids(ids)})))`;

/**
 * Instants as milliseconds, for `fromMs`, in the statements of each fire. PostgreSQL reads them in half the time that a
 * written date takes.
 */
export const milliseconds = (values: readonly (Instant | null)[]): SQL => bigints(values.map(msOf));

/** A double is off by a quarter of a microsecond at most, and `to_timestamp` rounds to whole ones. */
export const fromMs = (column: SQL): SQL => sql`to_timestamp(${column} / 1000.0::float8)`;

function msOf(at: Instant | null): number | null {
  if (at === null) return null;
  if (!Number.isFinite(at)) throw new RangeError(`${at} is no instant`);
  return Math.trunc(at);
}

/** Values whose text needs no quotes: ids, numbers, instants. */
function plain(values: readonly (string | number | boolean | null)[]): string {
  if (!values.includes(null)) return `{${values.join(',')}}`;
  return values.some((value) => value !== null) ? `{${values.map((value) => value ?? 'NULL').join(',')}}` : '{}';
}

function quoted(value: string): string {
  return `"${value.replaceAll(/["\\]/g, '\\$&')}"`;
}

/** Before all others: where a walk by uuid begins. */
export const FIRST_UUID = '00000000-0000-0000-0000-000000000000';

/**
 * True for any uuid in a batch. The planner expects few rows for a range, and so it looks up each row of the other
 * table by its key. Without it, the planner may read a whole table for each batch if the table has just grown.
 */
export function anyUid(column: SQL): SQL {
  return sql`${column} BETWEEN '00000000-0000-0000-0000-000000000000' AND 'ffffffff-ffff-ffff-ffff-ffffffffffff'`;
}
