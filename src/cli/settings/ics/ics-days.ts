import ICAL from 'ical.js';
import { type DayRange, dayOfDate } from '../../../core/exclusions/day-set.ts';
import { type DayNumber, DAY_MS } from '../../../core/instant.ts';
import type { ReadEvent } from './ics-events.ts';
import { type Budget, addRepeated } from './ics-rules.ts';

/** Whole days, as an event writes them. */
export interface WholeDays {
  first: DayNumber;
  /** How many. */
  length: number;
}

/**
 * Null: the event has a time of day. From midnight to midnight in one zone is a whole day, at the dates that are written there; Outlook
 * marks those whose zones differ.
 */
export function wholeDaysOf(event: ReadEvent): WholeDays | null {
  const [start] = momentsOf(event, 'dtstart');
  if (start === undefined) return event.refuse('it has no DTSTART');
  const [end] = momentsOf(event, 'dtend');
  if (start.time !== null) {
    if (start.time !== MIDNIGHT || end?.time !== MIDNIGHT) return null;
    const isMarked = event.component.getFirstPropertyValue('x-microsoft-cdo-alldayevent') === 'TRUE';
    const isWhole = zoneOf(event, 'dtstart') === zoneOf(event, 'dtend') && end.day > start.day;
    if (!isMarked && !isWhole) return null;
  }
  const length = end === undefined ? durationOf(event) : end.day - start.day;
  // Some programs write a day that ends on the day on which it begins.
  return { first: start.day, length: Math.max(1, length) };
}

function zoneOf(event: ReadEvent, name: string): string {
  return String(event.component.getFirstProperty(name)?.getFirstParameter('tzid'));
}

/** Without a zone: in UTC, midnight is another day elsewhere. */
const MIDNIGHT = '00:00:00';

function durationOf(event: ReadEvent): number {
  const duration = event.component.getFirstPropertyValue('duration');
  if (!(duration instanceof ICAL.Duration)) return 1;
  const days = (duration.toSeconds() * 1000) / DAY_MS;
  return Number.isInteger(days) && days >= 0
    ? days
    : event.refuse(`DURATION:${duration.toString()} is no number of days`);
}

/** The day that an event of a series stands for, and replaces; null: it is none. */
export function replacedDay(event: ReadEvent): DayNumber | null {
  if (event.lines.some((line) => /^RECURRENCE-ID[^:]*;RANGE=/i.test(line)))
    event.refuse('RECURRENCE-ID with a RANGE is not supported');
  return momentsOf(event, 'recurrence-id')[0]?.day ?? null;
}

/** The days on which a series begins anew, in no order; those after `last` may be missing. */
export function startsOf(
  event: ReadEvent,
  first: DayNumber,
  last: DayNumber,
  budget: Budget,
): Set<DayNumber> {
  const starts = new Set([first]);
  for (const { day } of momentsOf(event, 'rdate')) starts.add(day);
  addRepeated(starts, { event, first, last, budget });
  for (const { day } of momentsOf(event, 'exdate')) starts.delete(day);
  return starts;
}

interface Moment {
  day: DayNumber;
  /** As it is written: `09:30:00`, with a Z for UTC; null: a whole day. */
  time: string | null;
}

/** All values of a property, from its text: the library makes 3 March of 31 February. */
function momentsOf(event: ReadEvent, name: string): Moment[] {
  return event.component.getAllProperties(name).flatMap((property) => {
    const [, , type, ...values] = property.toJSON() as unknown as [string, object, string, ...unknown[]];
    if (type === 'period') event.refuse(`${name.toUpperCase()} has a time of day`);
    return values.map((value): Moment => {
      // Where VALUE=DATE is missing, a day looks like a time without digits.
      const [, date = '', time = null] =
        /^([1-9]\d{3}-\d\d-\d\d)(?:T(?!::$)(.+)|T::)?$/.exec(String(value)) ?? [];
      const day = date === '' ? null : dayOfDate(date);
      if (day === null) return event.refuse(`${name.toUpperCase()} is no date: ${String(value)}`);
      return { day, time };
    });
  });
}

export function rangeFrom(day: DayNumber, { length }: WholeDays, years: DayRange): DayRange | null {
  const range = { first: Math.max(day, years.first), last: Math.min(day + length - 1, years.last) };
  return range.first <= range.last ? range : null;
}
