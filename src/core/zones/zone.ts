import { DateTime } from 'luxon';
import type { Instant } from '../instant.ts';
import { zoneOffsets } from './zone-offsets.ts';

/** An IANA name or link. Offsets (`+02:00`), `local`, the empty string and ICU's own old names (`BST`) are not zones here. */
export function isZone(name: string): boolean {
  if (!/^[A-Za-z][A-Za-z0-9_+\-/]*$/.test(name) || isOnlyOfIcu(name)) return false;
  try {
    // Tried out: Intl.supportedValuesOf leaves out links that work.
    zoneOffsets(name);
    return true;
  } catch {
    return false;
  }
}

/** Wall-clock time with its offset, such as `2026-03-29T03:00:00.000+02:00`. */
export function localTime(at: Instant, timezone: string | null): string {
  const text = DateTime.fromMillis(at, { zone: timezone ?? 'UTC' }).toISO();
  if (text === null) throw new Error(`no local time in ${timezone ?? 'UTC'}`);
  return text;
}

const THREE_LETTERS_OF_IANA = new Set('CET EET EST GMT HST MET MST PRC ROC ROK UCT UTC WET'.split(' '));
const REMOVED_FROM_IANA = new Set(['US/PACIFIC-NEW', 'CANADA/EAST-SASKATCHEWAN']);

/** Intl knows these from old Java: `BST` would be Bangladesh, and `AST` Alaska, which is not what people mean by them. */
function isOnlyOfIcu(name: string): boolean {
  const upper = name.toUpperCase();
  if (upper.length === 3) return !THREE_LETTERS_OF_IANA.has(upper);
  return upper.startsWith('SYSTEMV/') || REMOVED_FROM_IANA.has(upper);
}
