import { type DayNumber, type Instant, DAY_MS } from '../instant.ts';
import type { CalendarVersions } from '../exclusions/exclusion.ts';
import { FIRST_SECOND, LAST_SECOND, type Second, type ZoneOffsets } from '../zones/zone-offsets.ts';

/** The seconds of a date, as a local clock counts them. */
export const DAY_SECONDS: Second = DAY_MS / 1000;

/** No local time is shown further than this from where a clock of another offset shows it. */
const MAX_APART: Second = 2 * DAY_SECONDS;

/**
 * When a clock that never goes backwards shows a local time for the first time; after a gap of less than 24 h, if that swallowed it. Null:
 * it is never shown, since its date did not exist.
 */
export function secondOf(zone: ZoneOffsets, wall: Second): Second | null {
  let at = Math.max(wall - MAX_APART, FIRST_SECOND);
  while (at < LAST_SECOND) {
    const { start, end, offset, gapFrom } = zone.at(at);
    if (wall < start + offset) return wall >= gapFrom ? start : null;
    if (wall - offset < end) return wall - offset;
    at = end;
  }
  return null;
}

/** A date that a country left out did not exist. */
export function exists(zone: ZoneOffsets, day: DayNumber): boolean {
  return day > LAST_LISTED || secondOf(zone, day * DAY_SECONDS + DAY_SECONDS / 2) !== null;
}

/** From then on, zone data only repeat their last rules, which leave out no date: a search need not compute these years. */
const LAST_LISTED: DayNumber = Date.UTC(2038, 0, 1) / DAY_MS;

export interface DatesJudged {
  zone: ZoneOffsets;
  versions: CalendarVersions;
  /** What calendars said as the schedule came to its fire times: no date is judged by an earlier version. */
  firstVersion: number;
}

/** The version of the calendars that judges a date: that of its first moment, or the first version that the schedule knew. */
export function calendarVersionOf({ zone, versions, firstVersion }: DatesJudged, day: DayNumber): number {
  const versionAt = (at: Instant) => Math.max(versions.indexAt(at), firstVersion);
  const [earliest, latest] = [versionAt((day - 2) * DAY_MS), versionAt((day + 2) * DAY_MS)];
  return earliest === latest ? earliest : versionAt(dateBeginsAt(zone, day));
}

/** [from, until) */
export interface DateSpan {
  from: Instant;
  until: Instant;
}

/** While clocks show a date, in order: twice, if they were set back over midnight; never, if it was left out. */
export function spansOf(zone: ZoneOffsets, day: DayNumber): DateSpan[] {
  const spans: DateSpan[] = [];
  const [begin, end] = [day * DAY_SECONDS, (day + 1) * DAY_SECONDS];
  for (let at = begin - MAX_APART; at < end + MAX_APART;) {
    const segment = zone.at(at);
    const from = Math.max(at, begin - segment.offset);
    const until = Math.min(segment.end, end - segment.offset);
    if (from < until) spans.push({ from: from * 1000, until: until * 1000 });
    at = segment.end;
  }
  return spans;
}

/** The first moment of a date; of one that did not exist, that of the date after it. */
export function dateBeginsAt(zone: ZoneOffsets, day: DayNumber): Instant {
  const second = secondOf(zone, day * DAY_SECONDS) ?? secondOf(zone, (day + 1) * DAY_SECONDS);
  return (second ?? LAST_SECOND) * 1000;
}

/** The date that a clock shows which never goes backwards. */
export function dateAt(zone: ZoneOffsets, at: Instant): DayNumber {
  const second = Math.floor(at / 1000);
  const { offset, freshFrom } = zone.at(Math.min(Math.max(second, FIRST_SECOND), LAST_SECOND - 1));
  return Math.floor(Math.max(second + offset, freshFrom) / DAY_SECONDS);
}
