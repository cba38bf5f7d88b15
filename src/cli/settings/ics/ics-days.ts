import ICAL from 'ical.js';
import { type DayRange, dayOfDate, weekdayOf, dateOfDay } from '../../../core/exclusions/day-set.ts';
import { type DayNumber, DAY_MS } from '../../../core/instant.ts';
import type { ReadEvent } from './ics-events.ts';
import { type RuleText, readRuleText, RuleFault, weekdayNumber } from '../../../core/cron/foreign/rule-text.ts';

/** Whole days, as an event writes them. */
interface WholeDays {
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
export function startsOf(event: ReadEvent, first: DayNumber, last: DayNumber, budget: Budget): Set<DayNumber> {
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
      const [, date = '', time = null] = /^([1-9]\d{3}-\d\d-\d\d)(?:T(?!::$)(.+)|T::)?$/.exec(String(value)) ?? [];
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

/** How many days are found, and months looked at, for the rules of a whole file: hostile ones have no end. */
export interface Budget {
  steps: number;
}

interface Repeated {
  event: ReadEvent;
  first: DayNumber;
  last: DayNumber;
  budget: Budget;
}

/** Adds the days on which the rules of an event repeat it, up to `last`. */
function addRepeated(starts: Set<DayNumber>, repeated: Repeated): void {
  const { event, first, last } = repeated;
  if (event.lines.some((line) => /^(?:EXRULE|RRULE.*[;:]RSCALE=)/i.test(line)))
    event.refuse(`EXRULE and RSCALE are ${WHY_NOT}`);
  for (const line of event.lines.filter((one) => /^RRULE[;:]/i.test(one))) {
    const written = writtenRule(event, line.slice(line.indexOf(':') + 1));
    const rule = ruleOf(written, first);
    if (rule === null) return event.refuse(`its RRULE is ${WHY_NOT}`);
    const until = written.until === null ? Infinity : lastDayOf(written.until);
    if (until === null) return event.refuse('its RRULE has an UNTIL that is no date');
    addDays(starts, rule, { count: written.count ?? Infinity, end: Math.min(last, until) }, repeated);
  }
}

function writtenRule(event: ReadEvent, text: string): RuleText {
  try {
    return readRuleText(text);
  } catch (error) {
    if (error instanceof RuleFault) return event.refuse(`its RRULE ${error.message}`);
    throw error;
  }
}

const WHY_NOT = 'not supported: delete the event from the file, and name its days by --add';

const MAX_INTERVAL = 1000;

/** The parts of a rule that are followed, as RFC 5545, 3.3.10, says it: holidays come again each year. */
const PARTS = ['BYMONTH', 'BYMONTHDAY'];

/** What a rule leaves out, its first day says. Null: the rule is another one. */
function ruleOf(written: RuleText, first: DayNumber): YearlyRule | null {
  const { freq, interval, numbers, weekdays } = written;
  if (freq !== 'YEARLY' || interval > MAX_INTERVAL) return null;
  if (Object.entries(numbers).some(([part, list]) => list.length > 0 && !PARTS.includes(part))) return null;
  const { month, monthDay } = dateParts(first);
  const rule = {
    ...{ interval, months: new Set(numbers.BYMONTH), monthDays: new Set(numbers.BYMONTHDAY) },
    // Here, Monday is 0.
    weekdays: new Set(weekdays.map(([nth, day]) => weekdayKey((weekdayNumber(day) + 6) % 7, nth))),
  };
  const namesDays = rule.weekdays.size + rule.monthDays.size > 0;
  if (rule.months.size === 0 && namesDays) return null;
  if (rule.months.size === 0) rule.months.add(month);
  if (!namesDays) rule.monthDays.add(monthDay);
  return rule;
}

interface Bounds {
  count: number;
  end: DayNumber;
}

function addDays(
  starts: Set<DayNumber>,
  rule: YearlyRule,
  { count, end }: Bounds,
  { event, first, budget }: Repeated,
): void {
  let left = count;
  for (let index = 0; left > 0; index += 1) {
    const { begin, days } = daysInYear(rule, dateParts(first).year + index * rule.interval);
    const found = days.filter((day) => day >= first && day <= end).slice(0, left);
    budget.steps -= Math.max(rule.months.size, found.length);
    if (budget.steps < 0) event.refuse('it repeats too often to be a holiday');
    if (begin > end) return;
    for (const day of found) starts.add(day);
    left -= found.length;
  }
}

/**
 * A whole day has no zone, but Outlook ends a series by the UTC of its last midnight. 13 hours later it is that day in each zone from
 * Hawaii to New Zealand. Null: there is no such day.
 */
function lastDayOf(until: string): DayNumber | null {
  const [, date = '', hour = 0] = /^(\d{8})(?:T(\d\d)\d{4}Z|T\d{6})?$/.exec(until) ?? [];
  const day = dayOfDate(date.replace(/^(....)(..)(..)$/, '$1-$2-$3'));
  return day !== null && Number(hour) + 13 >= 24 ? day + 1 : day;
}

/** A yearly rule of RFC 5545, 3.3.10. An empty set of days leaves nothing out. */
interface YearlyRule {
  /** In years. */
  interval: number;
  /** From 1 on. */
  months: ReadonlySet<number>;
  /** -1: the last day of a month. */
  monthDays: ReadonlySet<number>;
  /** 0: each Monday; 7, 8, …: the first Monday of a month, the first Tuesday; -7: its last Monday. */
  weekdays: ReadonlySet<number>;
}

/** When a year begins, and the days of a rule in it, in their order: also those before the first day of the event. */
function daysInYear(rule: YearlyRule, year: number): { begin: DayNumber; days: DayNumber[] } {
  const january = year * 12 - 1;
  const months = [...rule.months].sort((a, b) => a - b);
  return {
    begin: monthBegin(year * 12),
    days: months.flatMap((month) => daysInMonth(rule, january + month)),
  };
}

/** Of a month since the year 0. */
function daysInMonth({ monthDays, weekdays }: YearlyRule, month: number): DayNumber[] {
  const [begin, end] = [monthBegin(month), monthBegin(month + 1)];
  const isNamed = (day: DayNumber) => {
    const weekday = weekdayOf(day);
    const [nth, nthLast] = [1 + Math.floor((day - begin) / 7), -1 - Math.floor((end - 1 - day) / 7)];
    return [0, nth, nthLast].some((ordinal) => weekdays.has(weekdayKey(weekday, ordinal)));
  };
  const days: DayNumber[] = [];
  for (let day = begin; day < end; day += 1)
    if (
      (monthDays.size === 0 || monthDays.has(day - begin + 1) || monthDays.has(day - end)) &&
      (weekdays.size === 0 || isNamed(day))
    )
      days.push(day);
  return days;
}

function monthBegin(month: number): DayNumber {
  return Date.UTC(Math.floor(month / 12), month % 12, 1) / DAY_MS;
}

/** Ordinal 0: each of them. */
function weekdayKey(weekday: number, ordinal: number): number {
  return ordinal * 7 + weekday;
}

/** The month counts from 1. */
function dateParts(day: DayNumber): { year: number; month: number; monthDay: number } {
  const [year = 0, month = 0, monthDay = 0] = dateOfDay(day).split('-').map(Number);
  return { year, month, monthDay };
}
