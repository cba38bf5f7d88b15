import type { Instant } from '../instant.ts';

/**
 * The wait, in whole seconds, that a `Retry-After` value asks for (RFC 9110 §10.2.3: seconds, or a date in any of the
 * three forms of HTTP). For a past moment it is 0; for any other text null.
 */
export function parseRetryAfter(value: string, now: Instant): number | null {
  const text = value.trim();
  if (/^-?\d+$/.test(text)) return wholeSeconds(Number(text));
  if (!HTTP_DATE.test(text)) return null;
  // The asctime form carries no zone and means UTC; Date.parse would take it for local time.
  const at = Date.parse(text.endsWith('GMT') ? text : `${text} GMT`);
  return Number.isNaN(at) ? null : wholeSeconds((at - now) / 1000);
}

/** Date.parse alone accepts far too much ("1.5" is a day in 2001). */
const HTTP_DATE =
  /^(?:[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT|[A-Z][a-z]{5,8}, \d{2}-[A-Z][a-z]{2}-\d{2} \d{2}:\d{2}:\d{2} GMT|[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2} \d{4})$/;

function wholeSeconds(seconds: number): number {
  return Math.min(Math.max(Math.ceil(seconds), 0), Number.MAX_SAFE_INTEGER);
}
