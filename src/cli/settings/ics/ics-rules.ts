import {
  RuleFault,
  type RuleText,
  readRuleText,
  weekdayNumber,
} from '../../../core/cron/foreign/rule-text.ts';
import { dayOfDate } from '../../../core/exclusions/date-entries.ts';
import type { DayNumber } from '../../../core/utc-day.ts';
import type { ReadEvent } from './ics-events.ts';
import { type YearlyRule, dateParts, daysInYear, weekdayKey } from './ics-years.ts';

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
