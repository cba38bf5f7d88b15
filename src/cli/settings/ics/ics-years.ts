import { dateOfDay } from '../../../core/exclusions/date-entries.ts';
import { weekdayOf } from '../../../core/exclusions/day-set.ts';
import { DAY_MS, type DayNumber } from '../../../core/utc-day.ts';

/** A yearly rule of RFC 5545, 3.3.10. An empty set of days leaves nothing out. */
export interface YearlyRule {
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
export function daysInYear(rule: YearlyRule, year: number): { begin: DayNumber; days: DayNumber[] } {
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
export function weekdayKey(weekday: number, ordinal: number): number {
  return ordinal * 7 + weekday;
}

/** The month counts from 1. */
export function dateParts(day: DayNumber): { year: number; month: number; monthDay: number } {
  const [year = 0, month = 0, monthDay = 0] = dateOfDay(day).split('-').map(Number);
  return { year, month, monthDay };
}
