import { dateOfDay } from '../../../core/exclusions/date-entries.ts';
import { weekdayOf } from '../../../core/exclusions/day-set.ts';
import { DAY_MS, type DayNumber } from '../../../core/utc-day.ts';

/** A rule of RFC 5545, 3.3.10. An empty set leaves nothing out. */
export interface IcsRule {
  freq: string;
  interval: number;
  /** 0: weeks begin on Monday. */
  weekStart: number;
  /** From 1 on. */
  months: ReadonlySet<number>;
  /** -1: the last day of a month. */
  monthDays: ReadonlySet<number>;
  /** 0: each Monday; 7, 8, …: the first Monday of a month, the first Tuesday; -7: its last Monday. */
  weekdays: ReadonlySet<number>;
  /** Which of the days of a period. -1: the last. */
  positions: ReadonlySet<number>;
}

interface Period {
  begin: DayNumber;
  /** In their order, of the whole period: also those before the first day of the event. */
  days: DayNumber[];
}

/** The n-th day, week, month or year that a rule looks at, and its days there. The work is bounded, whatever the rule. */
export function icsPeriodOf(rule: IcsRule, first: DayNumber, index: number): Period {
  const { begin, days } = wholePeriod(rule, first, index * rule.interval);
  const { positions } = rule;
  if (positions.size === 0) return { begin, days };
  return { begin, days: days.filter((_, at) => positions.has(at + 1) || positions.has(at - days.length)) };
}

function wholePeriod(rule: IcsRule, first: DayNumber, steps: number): Period {
  if (rule.freq === 'DAILY') return { begin: first + steps, days: [first + steps] };
  if (rule.freq === 'WEEKLY') return weekOf(rule, first + 7 * steps);
  const { year, month } = dateParts(first);
  if (rule.freq === 'MONTHLY') return monthOf(rule, year * 12 + month - 1 + steps);
  const january = (year + steps) * 12;
  const months = [...rule.months].sort((a, b) => a - b);
  return { begin: monthBegin(january), days: months.flatMap((one) => monthOf(rule, january + one - 1).days) };
}

function weekOf({ weekStart, weekdays }: IcsRule, day: DayNumber): Period {
  const begin = day - ((weekdayOf(day) - weekStart + 7) % 7);
  const days = Array.from({ length: 7 }, (_, at) => begin + at);
  return { begin, days: days.filter((one) => weekdays.has(weekdayOf(one))) };
}

/** Of a month since the year 0. */
function monthOf({ monthDays, weekdays }: IcsRule, month: number): Period {
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
  return { begin, days };
}

function monthBegin(month: number): DayNumber {
  return Date.UTC(Math.floor(month / 12), month % 12, 1) / DAY_MS;
}

/** Ordinal 0: each of them. */
export function weekdayKey(weekday: number, ordinal: number): number {
  return ordinal * 7 + weekday;
}

/** The month counts from 1. */
export function dateParts(day: DayNumber): { year: number; month: number; monthDay: number } {
  const [year = 0, month = 0, monthDay = 0] = dateOfDay(day).split('-').map(Number);
  return { year, month, monthDay };
}
