import ICAL from 'ical.js';
import { dateOfDay, dayOfDate } from '../../../core/exclusions/date-entries.ts';
import type { DayNumber } from '../../../core/utc-day.ts';
import type { IcsEvent } from './ics-events.ts';

/** What is read at most of the rules of a whole file: hostile ones have no end. */
export interface Budget {
  steps: number;
}

interface Repeated {
  event: IcsEvent;
  first: DayNumber;
  last: DayNumber;
  budget: Budget;
}

/** Adds the days on which the rules of an event repeat it, up to `last`. */
export function addRepeated(starts: Set<DayNumber>, repeated: Repeated): void {
  const { event, first } = repeated;
  if (event.lines.some((line) => /^(?:EXRULE|RRULE.*[;:]RSCALE=)/i.test(line)))
    event.refuse(`EXRULE and RSCALE are ${WHY_NOT}`);
  for (const property of event.component.getAllProperties('rrule')) {
    const rule: unknown = property.getFirstValue();
    if (!(rule instanceof ICAL.Recur) || !completeRule(rule, first))
      return event.refuse(`its RRULE is ${WHY_NOT}`);
    addDays(starts, rule, repeated);
  }
}

const WHY_NOT = 'not supported: delete the event from the file, and name its days by --add';

const MAX_INTERVAL = 1000;

/** The parts that the library reads as RFC 5545 says, by walks over days. */
const PARTS: Readonly<Record<string, readonly string[]>> = {
  DAILY: [],
  WEEKLY: ['BYDAY'],
  MONTHLY: ['BYDAY', 'BYMONTHDAY', 'BYSETPOS'],
  YEARLY: ['BYMONTH', 'BYDAY', 'BYMONTHDAY', 'BYSETPOS'],
};

/** Says by itself what the first day would say: the library makes 1 March of 29 February. False: the rule is another one. */
function completeRule(rule: ICAL.Recur, first: DayNumber): boolean {
  const known = PARTS[rule.freq];
  if (
    known === undefined ||
    rule.interval > MAX_INTERVAL ||
    !Object.keys(rule.parts).every((part) => known.includes(part))
  )
    return false;
  if (rule.until?.isDate === false) rule.until = lastDayOf(rule.until);
  if (rule.freq !== 'YEARLY') return true;
  const [, month, day] = dateOfDay(first).split('-').map(Number);
  const has = (part: string) => rule.getComponent(part).length > 0;
  // It counts positions within each month.
  if (has('BYSETPOS') && rule.getComponent('BYMONTH').length > 1) return false;
  if (!has('BYMONTH')) {
    if (has('BYDAY') || has('BYMONTHDAY')) return false;
    rule.setComponent('BYMONTH', [month]);
  }
  if (!has('BYDAY') && !has('BYMONTHDAY')) rule.setComponent('BYMONTHDAY', [day]);
  return monthDaysOf(rule).every((one) => one > 0);
}

function addDays(starts: Set<DayNumber>, rule: ICAL.Recur, { event, first, last, budget }: Repeated): void {
  const monthDays = rule.freq === 'YEARLY' ? monthDaysOf(rule) : [];
  let left = rule.count ?? Infinity;
  rule.count = null;
  for (const iterator = rule.iterator(icalDate(first)); left > 0;) {
    const next = iterator.next() as ICAL.Time | null;
    // Null: the library's own 29 February 1700.
    const day = next === null ? null : dayOfDate(next.toString());
    if (next === null || (day !== null && day > last)) return;
    budget.steps -= 1;
    if (budget.steps < 0) event.refuse('it repeats too often to be a holiday');
    // Of a 31st of April, the library makes 1 May.
    if (day === null || (monthDays.length > 0 && !monthDays.includes(next.day))) continue;
    left -= 1;
    starts.add(day);
  }
}

function monthDaysOf(rule: ICAL.Recur): number[] {
  return rule.getComponent('BYMONTHDAY').map(Number);
}

/**
 * A whole day has no zone, but Outlook ends a series by the UTC of its last midnight. 13 hours later it is that day in each zone from
 * Hawaii to New Zealand.
 */
function lastDayOf(until: ICAL.Time): ICAL.Time {
  const shifted = until.clone();
  if (shifted.zone.tzid === 'UTC') shifted.addDuration(ICAL.Duration.fromSeconds(13 * 3600));
  return icalDate(dayOfDate(shifted.toString().slice(0, 10)) ?? 0);
}

function icalDate(day: DayNumber): ICAL.Time {
  return ICAL.Time.fromDateString(dateOfDay(day));
}
