import { type Calendar, calendarOf, everyDay } from './calendar.ts';
import { type DayFinder, dayFinder, trailingZeros } from './calendar-days.ts';
import { DAY_OF_MONTH, DAY_OF_WEEK, type Field } from './cron-fields.ts';
import type { FieldValues } from './cron-field.ts';
import type { ParsedCron } from './cron-parse.ts';
import type { Second } from './zone-offsets.ts';

/** An expression without its zone: what a clock on the wall shows when it fires. */
export interface WallTimes {
  /** All 24 hours are selected: it fires by real time, whatever the clock is set to. */
  periodic: boolean;
  /** The first local time at or after one at which it fires; null: never again. */
  next(wall: Second): Second | null;
}

const DAY = 86_400;
const ALL_HOURS = 2 ** 24 - 1;

export function wallTimes(parsed: ParsedCron): WallTimes {
  const { second, minute, hour, month } = parsed;
  const nextDay: DayFinder = dayFinder(calendarFor(parsed), month.low >>> 1);
  const nextTime = timeFinder(bits60(second), bits60(minute), hour.low);
  const firstTime = nextTime(0);
  return {
    periodic: hour.low === ALL_HOURS,
    next: (wall) => {
      const day = Math.floor(wall / DAY);
      let found = nextDay(day);
      if (found === day) {
        const time = nextTime(wall - day * DAY);
        if (time >= 0) return day * DAY + time;
        found = nextDay(day + 1);
      }
      return found === null ? null : found * DAY + firstTime;
    },
  };
}

/** Sets of 0 … 59 as two small integers of 30 bits. */
interface Bits60 {
  low: number;
  high: number;
}

const bits60 = ({ low, high }: FieldValues): Bits60 => ({ low, high });

/** The first second of the day at or after one; -1: none on that day. */
function timeFinder(seconds: Bits60, minutes: Bits60, hours: number): (time: Second) => Second {
  const firstSecond = next60(seconds, 0);
  const firstMinute = next60(minutes, 0);
  return (time) => {
    const hour = Math.floor(time / 3600);
    if ((hours >>> hour) & 1) {
      const rest = time - hour * 3600;
      const minute = Math.floor(rest / 60);
      const second = has60(minutes, minute) ? next60(seconds, rest - minute * 60) : -1;
      if (second >= 0) return time - rest + minute * 60 + second;
      const later = next60(minutes, minute + 1);
      if (later >= 0) return time - rest + later * 60 + firstSecond;
    }
    const left = hours >>> (hour + 1);
    if (left === 0) return -1;
    return (hour + 1 + trailingZeros(left)) * 3600 + firstMinute * 60 + firstSecond;
  };
}

const has60 = ({ low, high }: Bits60, value: number): boolean =>
  ((value < 30 ? low >>> value : high >>> (value - 30)) & 1) === 1;

/** The first of the set from a value on; -1: none. */
function next60({ low, high }: Bits60, from: number): number {
  if (from < 30) {
    const left = low >>> from;
    if (left !== 0) return from + trailingZeros(left);
    return high === 0 ? -1 : 30 + trailingZeros(high);
  }
  const left = from < 60 ? high >>> (from - 30) : 0;
  return left === 0 ? -1 : from + trailingZeros(left);
}

function calendarFor({ dayOfMonth, dayOfWeek, bothDays }: ParsedCron): Calendar {
  if (dayOfMonth.any && dayOfWeek.any) return everyDay;
  const weekdays = cronerText(DAY_OF_WEEK, dayOfWeek);
  return calendarOf(cronerText(DAY_OF_MONTH, dayOfMonth), bothDays ? `+${weekdays}` : weekdays);
}

/** Numbers and specials only, in order: what croner reads never depends on how it was spelled. */
function cronerText(field: Field, { any, low, special }: FieldValues): string {
  if (any) return '*';
  const numbers: string[] = [];
  for (let value = field.min; value <= field.max; value += 1) {
    if ((low >>> value) & 1) numbers.push(String(value));
  }
  return [...numbers, ...special.toSorted()].join(',');
}
