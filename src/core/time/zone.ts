import { DateTime } from 'luxon';
import type { Instant } from '../instant.ts';
import { zoneOffsets } from './zone-offsets.ts';

/** An IANA name or link. Offsets (`+02:00`), `local` and the empty string are not zones here. */
export function isZone(name: string): boolean {
  if (!/^[A-Za-z][A-Za-z0-9_+\-/]*$/.test(name)) return false;
  try {
    // Asked by use: Intl.supportedValuesOf leaves out links that work.
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
