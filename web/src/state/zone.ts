import { storedSignal } from './stored.ts';

const ZONES = ['schedule', 'mine', 'utc'] as const;

/** In whose zone times are shown. */
export const zoneChoice = storedSignal('zone', ZONES, 'schedule');

/** An IANA name. */
export const MY_ZONE = new Intl.DateTimeFormat().resolvedOptions().timeZone || 'UTC';

/** The zone to show a time in. `scheduleZone`: of the schedule that it belongs to; null: UTC, or of none. */
export function shownZone(scheduleZone: string | null | undefined): string {
  if (zoneChoice.value === 'mine') return MY_ZONE;
  return zoneChoice.value === 'utc' ? 'UTC' : (scheduleZone ?? 'UTC');
}

/** One zone for a column of times, which are to be compared: that of the schedules where they share one, else the user's. */
export function oneZone(scheduleZones: readonly (string | null | undefined)[]): string {
  const [first = 'UTC', ...others] = new Set(scheduleZones.map((zone) => zone ?? 'UTC'));
  return shownZone(others.length === 0 ? first : MY_ZONE);
}

/** `2026-11-22 09:00:00 CET`, or `… Asia/Tokyo` where there is no common abbreviation. The zone's name is part of it, always. */
export function timeText(at: string | number, zone: string): string {
  const { year, month, day, hour, minute, second, timeZoneName } = partsOf(at, zone);
  return `${year}-${month}-${day} ${hour}:${minute}:${second} ${/^(?:GMT|UTC)[+-]/.test(timeZoneName) ? zone : timeZoneName}`;
}

/** `09:00`, or `09:00:20`: for axes and strips, beside which the zone is named. */
export function clockText(at: string | number, zone: string, hasSeconds = false): string {
  const { hour, minute, second } = partsOf(at, zone);
  return `${hour}:${minute}${hasSeconds ? `:${second}` : ''}`;
}

export function dayText(at: string | number, zone: string): string {
  const { year, month, day } = partsOf(at, zone);
  return `${year}-${month}-${day}`;
}

type Part = 'year' | 'month' | 'day' | 'hour' | 'minute' | 'second' | 'timeZoneName';

const formats = new Map<string, Intl.DateTimeFormat>();

function partsOf(at: string | number, zone: string): Record<Part, string> {
  const parts = formatOf(zone).formatToParts(new Date(at));
  return Object.fromEntries(parts.map(({ type, value }) => [type, value])) as Record<Part, string>;
}

function formatOf(zone: string): Intl.DateTimeFormat {
  const known = formats.get(zone);
  if (known) return known;
  const two = '2-digit' as const;
  const format = (timeZone: string) =>
    new Intl.DateTimeFormat('en-GB', {
      ...{ timeZone, timeZoneName: 'short', hourCycle: 'h23', year: 'numeric' },
      ...{ month: two, day: two, hour: two, minute: two, second: two },
    });
  let made: Intl.DateTimeFormat;
  try {
    made = format(zone);
  } catch {
    // The daemon's zone data are newer than this browser's: UTC is said beside the time.
    made = format('UTC');
  }
  formats.set(zone, made);
  return made;
}
