import { type SQL, sql } from 'drizzle-orm';
import { type Instant, isoInstant } from '../core/instant.ts';

/**
 * Batches go to the database as one array per column, unnested there: one statement whatever the
 * batch, and no text to be parsed as JSON.
 */
export const uuids = (values: readonly (string | null)[]): SQL => sql`${plain(values)}::uuid[]`;
export const ints = (values: readonly (number | null)[]): SQL => sql`${plain(values)}::int[]`;
export const bigints = (values: readonly (number | null)[]): SQL => sql`${plain(values)}::bigint[]`;
export const doubles = (values: readonly (number | null)[]): SQL => sql`${plain(values)}::float8[]`;
export const booleans = (values: readonly boolean[]): SQL => sql`${plain(values)}::boolean[]`;
export const instants = (values: readonly (Instant | null)[]): SQL =>
  sql`${plain(values.map((at) => (at === null ? null : isoInstant(at))))}::timestamptz[]`;
/** Any text, quoted. */
export const texts = (values: readonly (string | null)[]): SQL =>
  sql`${`{${values.map((value) => (value === null ? 'NULL' : quoted(value))).join(',')}}`}::text[]`;

/** Values whose text needs no quotes: ids, numbers, instants. */
function plain(values: readonly (string | number | boolean | null)[]): string {
  return `{${values.map((value) => value ?? 'NULL').join(',')}}`;
}

function quoted(value: string): string {
  return `"${value.replaceAll(/["\\]/g, '\\$&')}"`;
}
