import { LRUCache } from 'lru-cache';

/** Seconds since 1970-01-01T00:00:00Z; *wall* seconds count what a local clock shows, as if it showed UTC. */
export type Second = number;

/** A stretch of time with one offset, [start, end), at most one year long. */
export interface Segment {
  start: Second;
  end: Second;
  /** Wall = second + offset. */
  offset: number;
  /** Wall: the clock has shown, or skipped, all earlier local times before this segment began. */
  freshFrom: Second;
  /** Wall: at `start` the clock skipped [gapFrom, start + offset). Empty: it skipped nothing. */
  gapFrom: Second;
}

export interface ZoneOffsets {
  at(second: Second): Segment;
}

const DAY = 86_400;
/** Between these instants zones are known to the year; nothing fires outside them. */
export const FIRST_SECOND: Second = Date.UTC(1800, 0, 1) / 1000;
export const LAST_SECOND: Second = Date.UTC(10_000, 0, 1) / 1000;
/**
 * The distance between samples of the offset. A zone that changed its offset and changed back in between would go
 * unnoticed: the shortest such time in the zone data is just under 4 days (Freetown, 1939), since 1970 just under 7.
 */
const SAMPLE = 3 * DAY;
/** A gap this long is a date that did not exist. */
const SKIPPED_DATE = DAY;

// A formatter takes some 30 KB, a year of a zone less than one. There are some 600 names, and few are in use.
const zones = new LRUCache<string, ZoneOffsets>({ max: 256 });
const years = new LRUCache<string, Segment[]>({ max: 8192 });

const utc: ZoneOffsets = {
  at: () => ({
    start: FIRST_SECOND,
    end: LAST_SECOND,
    offset: 0,
    freshFrom: FIRST_SECOND,
    gapFrom: FIRST_SECOND,
  }),
};

// The first formatter of a process takes some 20 ms; no request should wait for that.
formatter('UTC').format(0);

/** Computed on demand, a year at a time. @throws RangeError for a zone that Intl does not know */
export function zoneOffsets(name: string | null): ZoneOffsets {
  const key = (name ?? 'UTC').toLowerCase();
  if (key === 'utc' || key === 'etc/utc') return utc;
  let zone = zones.get(key);
  if (!zone) {
    zone = byYear(key, formatter(key));
    zones.set(key, zone);
  }
  return zone;
}

function byYear(zone: string, format: Intl.DateTimeFormat): ZoneOffsets {
  // Questions come in order, and a herd asks about the same days.
  let last: Segment | undefined;
  return {
    at: (second) => {
      if (last && last.start <= second && second < last.end) return last;
      const year = new Date(second * 1000).getUTCFullYear();
      const key = `${zone} ${year}`;
      let segments = years.get(key);
      if (!segments) {
        segments = segmentsOf(year, format);
        years.set(key, segments);
      }
      const found = segments.find(({ end }) => second < end);
      if (!found) throw new Error(`no offset at ${second}`);
      return (last = found);
    },
  };
}

function segmentsOf(year: number, format: Intl.DateTimeFormat): Segment[] {
  const start = Date.UTC(year, 0, 1) / 1000;
  const end = Date.UTC(year + 1, 0, 1) / 1000;
  // Begins some days earlier, since the clock may be repeating local time when the year begins.
  const before = start - SAMPLE;
  let current = segmentFrom(before, offsetAt(before, format));
  const segments: Segment[] = [];
  for (const change of changesBetween(before, end, current.offset, format)) {
    current.end = change.at;
    segments.push(current);
    current = following(current, change);
  }
  current.end = end;
  segments.push(current);
  return segments.filter((segment) => segment.end > start).map((segment) => clipped(segment, start));
}

interface Change {
  at: Second;
  offset: number;
}

function* changesBetween(from: Second, to: Second, offset: number, format: Intl.DateTimeFormat): Iterable<Change> {
  let last = offset;
  for (let low = from; low < to; low += SAMPLE) {
    const high = Math.min(low + SAMPLE, to);
    const then = offsetAt(high, format);
    for (let at = low; last !== then;) {
      at = firstChange(at, high, last, format);
      last = offsetAt(at, format);
      if (at < to) yield { at, offset: last };
    }
  }
}

/** The first second at which the offset differs from the one at `low`. */
function firstChange(low: Second, high: Second, offset: number, format: Intl.DateTimeFormat): Second {
  let [same, other] = [low, high];
  while (other - same > 1) {
    const middle = Math.floor((same + other) / 2);
    if (offsetAt(middle, format) === offset) same = middle;
    else other = middle;
  }
  return other;
}

function segmentFrom(start: Second, offset: number): Segment {
  return { start, end: start, offset, freshFrom: start + offset, gapFrom: start + offset };
}

function following(previous: Segment, { at, offset }: Change): Segment {
  const next = segmentFrom(at, offset);
  // The latest local time that the clock has shown.
  const shown = Math.max(previous.freshFrom, at + previous.offset);
  next.freshFrom = Math.max(next.freshFrom, shown);
  if (offset - previous.offset < SKIPPED_DATE) next.gapFrom = Math.min(next.gapFrom, shown);
  return next;
}

function clipped(segment: Segment, start: Second): Segment {
  if (segment.start >= start) return segment;
  return { ...segment, start, gapFrom: start + segment.offset };
}

function formatter(timeZone: string): Intl.DateTimeFormat {
  return new Intl.DateTimeFormat('en-US', { timeZone, timeZoneName: 'longOffset' });
}

const OFFSET = /GMT(?:([+-])(\d\d):(\d\d)(?::(\d\d))?)?$/;

/** In seconds: local mean times need them. */
function offsetAt(second: Second, format: Intl.DateTimeFormat): number {
  const text = format.format(second * 1000);
  const parts = OFFSET.exec(text);
  if (!parts) throw new Error(`no offset in ${text}`);
  const [, sign, hours = 0, minutes = 0, seconds = 0] = parts;
  const size = Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds);
  return sign === '-' ? -size : size;
}
