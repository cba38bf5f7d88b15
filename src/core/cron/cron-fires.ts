import type { Instant } from '../instant.ts';
import { type LocalTimes, isPeriodic, nextLocalTime } from './cron-wall.ts';
import { FIRST_SECOND, LAST_SECOND, type Second, type Segment, type ZoneOffsets } from '../zones/zone-offsets.ts';

/** A cron expression in its zone: a pure function from an instant to the next fire strictly after it. */
export interface CronTimes {
  /** Null: it never fires again. */
  next(after: Instant): Instant | null;
  noteOf(at: Instant): Note | null;
}

/** What a change of the zone's offset did to a fire. */
type Note = 'moved by DST' | 'repeated hour';

/** No two offsets of a zone are further apart: two occurrences of one local time are at most this far apart. */
const MAX_APART: Second = 2 * 86_400;
const NOWHERE: Segment = { start: 0, end: 0, offset: 0, freshFrom: 0, gapFrom: 0 };

/**
 * If all hours are selected, every instant fires whose local time matches. Otherwise the rule uses a local clock that
 * never goes backwards, and a fire inside a gap of less than 24 h happens once, right after the gap. In a longer gap, a
 * date that did not exist, nothing fires: its segment has no `gapFrom` (zone-offsets.ts).
 */
export function firesIn(zone: ZoneOffsets, wall: LocalTimes): CronTimes {
  let segment = NOWHERE;
  // At midnight, ten thousand schedules ask the same question one after the other: one answer serves all of them.
  let asked: Instant | undefined;
  let answer: Instant | null = null;

  return {
    next: (after) => {
      if (after === asked) return answer;
      asked = after;
      const from = Math.max(Math.floor(after / 1000) + 1, FIRST_SECOND);
      if (from < segment.start || from >= segment.end) segment = from < LAST_SECOND ? zone.at(from) : NOWHERE;
      const second = search(zone, wall, from, segment);
      answer = second === null ? null : second * 1000;
      return answer;
    },
    noteOf: (at) => noteOf(zone, wall, at / 1000),
  };
}

/** The first fire at or after a second, which lies in a segment. */
function search(zone: ZoneOffsets, wall: LocalTimes, from: Second, segment: Segment): Second | null {
  const periodic = isPeriodic(wall);
  let second = from;
  while (second < LAST_SECOND) {
    if (second >= segment.end) segment = zone.at(second);
    const { start, end, offset, freshFrom } = segment;
    if (second === start && swallows(wall, segment)) return start;
    const local = nextLocalTime(wall, periodic ? second + offset : Math.max(second + offset, freshFrom));
    if (local === null) return null;
    if (local - offset < end) return local - offset;
    // Nothing matches before that local time. It can be years away: changes of the offset until shortly before it do
    // not matter.
    second = end < second + MAX_APART ? end : Math.max(end, local - MAX_APART);
  }
  return null;
}

/** Whether a fire falls into the gap at the start of a segment. */
function swallows(wall: LocalTimes, { start, offset, gapFrom }: Segment): boolean {
  if (isPeriodic(wall) || gapFrom >= start + offset) return false;
  const swallowed = nextLocalTime(wall, gapFrom);
  return swallowed !== null && swallowed < start + offset;
}

function noteOf(zone: ZoneOffsets, wall: LocalTimes, second: Second): Note | null {
  if (!(second >= FIRST_SECOND && second < LAST_SECOND)) return null;
  const segment = zone.at(second);
  if (second === segment.start && swallows(wall, segment)) return 'moved by DST';
  const local = second + segment.offset;
  if (local < segment.freshFrom) return 'repeated hour';
  let { end } = segment;
  while (end < Math.min(second + MAX_APART, LAST_SECOND)) {
    const later = zone.at(end);
    const again = local - later.offset;
    if (again >= later.start && again < later.end) return 'repeated hour';
    end = later.end;
  }
  return null;
}
