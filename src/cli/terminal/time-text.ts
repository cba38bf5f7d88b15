import type { Instant } from '../../core/instant.ts';

/**
 * An instant of an answer as people read it: in UTC and, if that differs, in the reader's zone, with its offset. Any
 * other text stays as it is.
 */
export function timeText(instant: string | null | undefined, zone: string): string {
  if (instant === null || instant === undefined) return '';
  const at = Date.parse(instant);
  if (Number.isNaN(at)) return instant;
  const utc = wallOf(at, 'UTC');
  const local = wallOf(at, zone);
  const shown = `${utc.date} ${utc.time}Z`;
  if (local.offset === utc.offset) return shown;
  return `${shown} = ${local.date === utc.date ? '' : `${local.date.slice(5)} `}${local.time}${local.offset}`;
}

interface CellTime {
  zone: string;
  now: Instant;
  hasLocal: boolean;
}

/** The same for a column: without the present year, and in whole seconds. */
export function timeCell(instant: string | null | undefined, { zone, now, hasLocal }: CellTime): string {
  const at = Date.parse(instant ?? '');
  if (Number.isNaN(at)) return instant ?? '';
  const second = at - (at % 1000);
  const utc = wallOf(second, 'UTC');
  const local = wallOf(second, zone);
  const date = utc.date.slice(0, 4) === wallOf(now, 'UTC').date.slice(0, 4) ? utc.date.slice(5) : utc.date;
  const shown = `${date} ${utc.time}Z`;
  if (!hasLocal || zone === 'UTC') return shown;
  return `${shown} = ${local.date === utc.date ? '' : `${local.date.slice(5)} `}${local.time}`;
}

/** The note below the times of a table. */
export function zoneNote(zone: string, hasLocal: boolean): string {
  if (zone === 'UTC') return 'times are UTC';
  return hasLocal ? `times are UTC = ${zone}` : `times are UTC; --wide shows those of ${zone} as well`;
}

/** `2.5 s`, `3 min`: roughly, as far as it matters. */
export function durationText(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return '';
  const size = Math.abs(ms);
  if (size < 1000) return `${Math.round(ms)} ms`;
  const [unit, length] = UNITS.find(([, length]) => size >= length) ?? ['s', 1000];
  const value = ms / length;
  return `${Math.abs(value) < 10 ? Number(value.toFixed(1)) : Math.round(value)} ${unit}`;
}

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1000],
] as const;

function wallOf(at: number, zone: string): { date: string; time: string; offset: string } {
  const parts = new Map(
    formatOf(zone)
      .formatToParts(at)
      .map(({ type, value }) => [type, value]),
  );
  const part = (type: Intl.DateTimeFormatPartTypes) => parts.get(type) ?? '';
  const seconds = `${part('hour')}:${part('minute')}:${part('second')}`;
  return {
    date: `${part('year')}-${part('month')}-${part('day')}`,
    time: at % 1000 === 0 ? seconds : `${seconds}.${String(at % 1000).padStart(3, '0')}`,
    offset: part('timeZoneName').replace('GMT', '') || '+00:00',
  };
}

const formats = new Map<string, Intl.DateTimeFormat>();

function formatOf(zone: string): Intl.DateTimeFormat {
  const known = formats.get(zone);
  if (known !== undefined) return known;
  const format = new Intl.DateTimeFormat('en-CA', {
    timeZone: zone,
    hourCycle: 'h23',
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    timeZoneName: 'longOffset',
  });
  formats.set(zone, format);
  return format;
}
