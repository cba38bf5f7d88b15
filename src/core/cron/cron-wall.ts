import { type DayPattern, dayPatternOf, everyDay } from './day-pattern.ts';
import { type FieldValues, type ParsedCron, valuesOf } from './cron-parse.ts';
import { type Field, DAY_OF_MONTH, DAY_OF_WEEK } from './cron-fields.ts';
import { remembering } from './remembering.ts';
import type { Second } from '../zones/zone-offsets.ts';
import { type DayNumber, DAY_MS, LATEST } from '../instant.ts';

/**
 * An expression without its zone: the local times at which it fires. There is one of these for each expression in use,
 * so it is one small object of small numbers: each set of 0 … 59 is two numbers of 30 bits.
 */
export interface LocalTimes {
  days: Days;
  hours: number;
  minutesLow: number;
  minutesHigh: number;
  secondsLow: number;
  secondsHigh: number;
  /** The earliest second of a day. */
  firstTime: Second;
  /** Null: the fields above say the times. Otherwise the fires of days were moved, and this alone says them. */
  moved: { nextLocalTime(wall: Second): Second | null } | null;
}

/** Which days a schedule keeps of those that its expression selects. */
export interface DayRule {
  /** The first day at or after one that may be kept; null: there is none. */
  firstFrom(day: DayNumber): DayNumber | null;
}

const DAY = 86_400;
const ALL_HOURS = 2 ** 24 - 1;
const ALL_MONTHS = 2 ** 12 - 1;

export function localTimesOf(parsed: ParsedCron, rule: DayRule | null = null): LocalTimes {
  const { second, minute, hour, month } = parsed;
  const times: LocalTimes = {
    days: daysOfPattern(dayPatternFor(parsed), month.low >>> 1, rule),
    hours: hour.low,
    minutesLow: minute.low,
    minutesHigh: minute.high,
    secondsLow: second.low,
    secondsHigh: second.high,
    firstTime: 0,
    moved: null,
  };
  times.firstTime = nextTime(times, 0);
  return times;
}

/** The local times of fires of which some were moved to other days; none of them is periodic. */
export function movedWallTimes(moved: NonNullable<LocalTimes['moved']>): LocalTimes {
  const days = daysOfPattern(everyDay, 0, null);
  const none = { hours: 0, minutesLow: 0, minutesHigh: 0, secondsLow: 0, secondsHigh: 0, firstTime: 0 };
  return { days, ...none, moved };
}

/** The same times, on one day. */
export function wallOn(wall: LocalTimes, day: DayNumber): LocalTimes {
  const only: DayRule = { firstFrom: (from) => (from <= day ? day : null) };
  return { ...wall, days: daysOfPattern(everyDay, ALL_MONTHS, only) };
}

/** All 24 hours are selected: it fires by real time, whatever the local clock does. */
export const isPeriodic = ({ hours }: LocalTimes): boolean => hours === ALL_HOURS;

/** The first local time at or after one at which it fires; null: it never fires again. */
export function nextLocalTime(times: LocalTimes, wall: Second): Second | null {
  if (times.moved !== null) return times.moved.nextLocalTime(wall);
  const day = Math.floor(wall / DAY);
  let found = nextDay(times.days, day);
  if (found === day) {
    const time = nextTime(times, wall - day * DAY);
    if (time >= 0) return day * DAY + time;
    found = nextDay(times.days, day + 1);
  }
  return found === null ? null : found * DAY + times.firstTime;
}

/** The first second of a day at or after one; -1: none on that day. */
export function nextTime(times: LocalTimes, time: Second): Second {
  const { hours, minutesLow, minutesHigh, secondsLow, secondsHigh } = times;
  const hour = Math.floor(time / 3600);
  if ((hours >>> hour) & 1) {
    const rest = time - hour * 3600;
    const minute = Math.floor(rest / 60);
    if (next60(minutesLow, minutesHigh, minute) === minute) {
      const second = next60(secondsLow, secondsHigh, rest - minute * 60);
      if (second >= 0) return hour * 3600 + minute * 60 + second;
    }
    const later = next60(minutesLow, minutesHigh, minute + 1);
    if (later >= 0) return hour * 3600 + later * 60 + next60(secondsLow, secondsHigh, 0);
  }
  const left = hours >>> (hour + 1);
  if (left === 0) return -1;
  const next = hour + 1 + trailingZeros(left);
  return next * 3600 + next60(minutesLow, minutesHigh, 0) * 60 + next60(secondsLow, secondsHigh, 0);
}

/** The first value of a set from a value on; -1: none. */
function next60(low: number, high: number, from: number): number {
  if (from < 30) {
    const left = low >>> from;
    if (left !== 0) return from + trailingZeros(left);
    return high === 0 ? -1 : 30 + trailingZeros(high);
  }
  const left = from < 60 ? high >>> (from - 30) : 0;
  return left === 0 ? -1 : from + trailingZeros(left);
}

/** The same text for the same days. */
export function daysNamed({ dayOfMonth, dayOfWeek, bothDays, month }: ParsedCron): string {
  const fields = [cronerText(DAY_OF_MONTH, dayOfMonth), cronerText(DAY_OF_WEEK, dayOfWeek), month.low];
  return `${fields.join(' ')}${bothDays ? ' +' : ''}`;
}

export function dayPatternFor({ dayOfMonth, dayOfWeek, bothDays }: ParsedCron): DayPattern {
  if (dayOfMonth.any && dayOfWeek.any) return everyDay;
  const weekdays = cronerText(DAY_OF_WEEK, dayOfWeek);
  return dayPatternOf(cronerText(DAY_OF_MONTH, dayOfMonth), bothDays ? `+${weekdays}` : weekdays);
}

/** Numbers and specials only, in order: croner's input never depends on how the expression was spelled. */
function cronerText(field: Field, values: FieldValues): string {
  if (values.any) return '*';
  return [...valuesOf(field, values), ...new Set(values.special.toSorted())].join(',');
}

/** The days that an expression selects, and the last month that was computed: questions usually come in order. */
interface Days {
  /** The first day at or after one that a rule keeps as well; null: there is no rule. */
  keptFrom: ((day: DayNumber) => DayNumber | null) | null;
  pattern: DayPattern;
  /** Bit 0 is January. */
  months: number;
  /** The present month: its first day, the first day after it, and its selected days (bit 0 is the first). */
  first: DayNumber;
  end: DayNumber;
  mask: number;
}

/** Every month, with its weekdays, recurs within 40 years, also over century years: after that, there is no match. */
const MONTHS_TO_SCAN = 41 * 12;

export function daysOfPattern(pattern: DayPattern, months: number, rule: DayRule | null = null): Days {
  const days: Days = { keptFrom: null, pattern, months, first: 0, end: 0, mask: 0 };
  if (rule !== null) days.keptFrom = remembering((from) => nextKept(days, rule, from));
  return days;
}

/** The first selected day at or after one; null: there never is one. */
export function nextDay(days: Days, from: DayNumber): DayNumber | null {
  return days.keptFrom === null ? nextSelected(days, from) : days.keptFrom(from);
}

/** Each step passes a day at least, and none goes beyond the years of the API. */
function nextKept(days: Days, rule: DayRule, from: DayNumber): DayNumber | null {
  for (let day: DayNumber | null = from; ;) {
    const selected: DayNumber | null = nextSelected(days, day);
    if (selected === null || selected > LAST_KEPT_DAY) return null;
    day = rule.firstFrom(selected);
    if (day === null || day === selected) return day;
  }
}

/** Whatever becomes of a fire of a later day, it is after the last instant that the API accepts. */
export const LAST_KEPT_DAY: DayNumber = LATEST / DAY_MS + 62;

function nextSelected(days: Days, from: DayNumber): DayNumber | null {
  if (from < days.first || from >= days.end) standOnMonthOf(days, from);
  let left = days.mask >>> (from - days.first);
  if (left !== 0) return from + trailingZeros(left);
  const date = new Date(days.first * DAY_MS);
  const start = date.getUTCFullYear() * 12 + date.getUTCMonth();
  for (let month = start + 1; month <= start + MONTHS_TO_SCAN; month += 1) {
    if (((days.months >>> (month % 12)) & 1) === 0) continue;
    standOn(days, Math.floor(month / 12), month % 12);
    left = days.mask;
    if (left !== 0) return days.first + trailingZeros(left);
  }
  return null;
}

/** The number must not be 0. */
const trailingZeros = (bits: number): number => 31 - Math.clz32(bits & -bits);

function standOnMonthOf(days: Days, day: DayNumber): void {
  const date = new Date(day * DAY_MS);
  standOn(days, date.getUTCFullYear(), date.getUTCMonth());
}

function standOn(days: Days, year: number, month: number): void {
  days.first = Date.UTC(year, month, 1) / DAY_MS;
  days.end = Date.UTC(year, month + 1, 1) / DAY_MS;
  // 1970-01-01 was a Thursday.
  const weekday = (((days.first + 4) % 7) + 7) % 7;
  days.mask = (days.months >>> month) & 1 ? days.pattern(days.end - days.first, weekday) : 0;
}
