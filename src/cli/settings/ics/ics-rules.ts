import {
  type RuleText,
  RuleFault,
  readRuleText,
  weekdayNumber,
} from '../../../core/cron/foreign/rule-text.ts';
import { dateOfDay, dayOfDate, weekdayOf } from '../../../core/exclusions/day-set.ts';
import { type DayNumber, DAY_MS } from '../../../core/instant.ts';
import type { ReadEvent } from './ics-events.ts';

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
export function addRepeated(starts: Set<DayNumber>, repeated: Repeated): void {
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
