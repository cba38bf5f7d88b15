import ICAL from 'ical.js';
import { dayOfDate } from '../../../core/exclusions/date-entries.ts';
import type { DayNumber } from '../../../core/utc-day.ts';
import type { IcsEvent } from './ics-events.ts';
import { type YearlyRule, dateParts, daysInYear, weekdayKey } from './ics-years.ts';

/** How many days are found, and months looked at, for the rules of a whole file: hostile ones have no end. */
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
  const { event, first, last } = repeated;
  if (event.lines.some((line) => /^(?:EXRULE|RRULE.*[;:]RSCALE=)/i.test(line)))
    event.refuse(`EXRULE and RSCALE are ${WHY_NOT}`);
  for (const property of event.component.getAllProperties('rrule')) {
    const written: unknown = property.getFirstValue();
    if (!(written instanceof ICAL.Recur)) return event.refuse(`its RRULE is ${WHY_NOT}`);
    const rule = ruleOf(written, first);
    if (rule === null) return event.refuse(`its RRULE is ${WHY_NOT}`);
    const until = untilOf(property);
    if (until === null) return event.refuse('its RRULE has an UNTIL that is no date');
    addDays(starts, rule, { count: written.count ?? Infinity, end: Math.min(last, until) }, repeated);
  }
}

const WHY_NOT = 'not supported: delete the event from the file, and name its days by --add';

const MAX_INTERVAL = 1000;

/** The parts of a rule that are followed, as RFC 5545, 3.3.10, says it: holidays come again each year. */
const PARTS = ['BYMONTH', 'BYDAY', 'BYMONTHDAY'];

/** What a rule leaves out, its first day says. Null: the rule is another one. */
function ruleOf(written: ICAL.Recur, first: DayNumber): YearlyRule | null {
  const { freq, interval, parts } = written;
  if (freq !== 'YEARLY' || interval > MAX_INTERVAL) return null;
  if (!Object.keys(parts).every((part) => PARTS.includes(part))) return null;
  const { month, monthDay } = dateParts(first);
  const numbers = (part: string) => new Set(written.getComponent(part).map(Number));
  const rule = {
    ...{ interval, months: numbers('BYMONTH'), monthDays: numbers('BYMONTHDAY') },
    weekdays: new Set(written.getComponent('BYDAY').map((name) => keyOf(String(name)))),
  };
  const namesDays = rule.weekdays.size + rule.monthDays.size > 0;
  if (rule.months.size === 0 && namesDays) return null;
  if (rule.months.size === 0) rule.months.add(month);
  if (!namesDays) rule.monthDays.add(monthDay);
  return rule;
}

/** Of `FR`, `1FR` or `-1FR`. */
function keyOf(name: string): number {
  return weekdayKey(WEEKDAYS.indexOf(name.slice(-2)), Number(name.slice(0, -2)));
}

const WEEKDAYS = ['MO', 'TU', 'WE', 'TH', 'FR', 'SA', 'SU'];

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

/** From its text: the library makes 3 March of 31 February. */
function untilOf(property: ICAL.Property): DayNumber | null {
  const [, , , { until }] = property.toJSON() as unknown as [string, object, string, { until?: string }];
  return until === undefined ? Infinity : lastDayOf(until);
}

/**
 * A whole day has no zone, but Outlook ends a series by the UTC of its last midnight. 13 hours later it is that day in each zone from
 * Hawaii to New Zealand. Null: there is no such day.
 */
function lastDayOf(until: string): DayNumber | null {
  const [, date = '', hour = 0] = /^(\d{4}-\d\d-\d\d)(?:T(\d\d).*Z|T.*)?$/.exec(until) ?? [];
  const day = date === '' ? null : dayOfDate(date);
  return day !== null && Number(hour) + 13 >= 24 ? day + 1 : day;
}
