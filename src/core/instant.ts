/** A point in time: milliseconds since 1970-01-01T00:00:00Z. Columns are `timestamptz(3)`, so nothing finer exists. */
export type Instant = number;

/** The years that the API accepts; PostgreSQL and JavaScript agree on every instant between them. */
export const EARLIEST: Instant = Date.UTC(2000, 0, 1);
export const LATEST: Instant = Date.UTC(2100, 0, 1);

/** 366 days: the longest interval of a schedule. */
export const MAX_INTERVAL_SECONDS = 366 * 86_400;

/** ISO 8601 in UTC with milliseconds, as the API answers and the target receives it. */
export function isoInstant(at: Instant): string {
  // Many consecutive fires have the same instant, several times each, and formatting it is the cost.
  if (at !== lastAt) {
    lastText = new Date(at).toISOString();
    lastAt = at;
  }
  return lastText;
}

export function isoOrNull(at: Instant | null): string | null {
  return at === null ? null : isoInstant(at);
}

let lastAt: Instant | null = null;
let lastText = '';

/** History is kept by the UTC day on which runs ended: a day is represented by its first moment. */
export const DAY_MS = 86_400_000;

/** A day of the calendar, without a zone: the number of days since 1970-01-01. */
export type DayNumber = number;

export function dayOf(at: Instant): Instant {
  return Math.max(EARLIEST, Math.floor(at / DAY_MS) * DAY_MS);
}

/** UUIDv7 layout (RFC 9562 §5.7): the time first, then 19 hexadecimal digits of the caller's, of which the fourth gives two bits. */
export function uuidV7(time: Instant, hex: string): string {
  const timeHex = time.toString(16).padStart(12, '0');
  const variant = ((parseInt(hex.charAt(3), 16) & 0x3) | 0x8).toString(16);
  return `${timeHex.slice(0, 8)}-${timeHex.slice(8)}-7${hex.slice(0, 3)}-${variant}${hex.slice(4, 7)}-${hex.slice(7, 19)}`;
}
