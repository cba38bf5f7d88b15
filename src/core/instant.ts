/** A point in time: milliseconds since 1970-01-01T00:00:00Z. Columns are `timestamptz(3)`, so nothing finer exists. */
export type Instant = number;

/** The years the API accepts; PostgreSQL and JavaScript agree on every instant between. */
export const EARLIEST: Instant = Date.UTC(2000, 0, 1);
export const LATEST: Instant = Date.UTC(2100, 0, 1);

/** ISO 8601 in UTC with milliseconds, as the API answers and the target receives it. */
export function isoInstant(at: Instant): string {
  // Many fires in a row say the same one, several times each, and writing it out is what costs.
  if (at !== lastAt) {
    lastText = new Date(at).toISOString();
    lastAt = at;
  }
  return lastText;
}

let lastAt: Instant | null = null;
let lastText = '';
