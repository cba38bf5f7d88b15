import { DAY_OF_MONTH, DAY_OF_WEEK, type Field, MONTH } from '../cron-fields.ts';
import {
  ALL,
  type ForeignEvery,
  type ForeignPick,
  NotSayable,
  type Written,
  dayName,
  writtenField,
} from './foreign-fields.ts';
import { type RuleText, weekdayNumber } from './rule-text.ts';

/** The days of a rule; what is missing is not restricted. */
interface RuleDays {
  dayOfMonth?: Written;
  dayOfWeek?: Written;
  month: Written;
  every?: ForeignEvery;
  pick?: ForeignPick;
}

const PERIODS = new Map<RuleText['freq'], ForeignPick['of']>([
  ['WEEKLY', 'week'],
  ['MONTHLY', 'month'],
  ['YEARLY', 'year'],
]);

/** `start`: the date on which its series begins; null: it is not known. @throws NotSayable */
export function ruleDays(rule: RuleText, start: string | null): RuleDays {
  const { freq, numbers } = rule;
  if (numbers.BYWEEKNO.length > 0) throw new NotSayable('BYWEEKNO: no field counts the weeks of a year');
  if (numbers.BYYEARDAY.length > 0 && freq !== 'YEARLY') throw new NotSayable('BYYEARDAY belongs to FREQ=YEARLY');
  const of = PERIODS.get(freq) ?? null;
  const days = { month: fieldOf(MONTH, numbers.BYMONTH), ...daysOf(rule, of, start) };
  const every = everyOf(rule, start, days);
  const pick = withPositions(rule, of, days.pick);
  return { ...days, ...(every && { every }), ...(pick && { pick }) };
}

type Days = Omit<RuleDays, 'month'> & { month?: Written };

function daysOf(rule: RuleText, of: ForeignPick['of'] | null, start: string | null): Days {
  const { weekdays, numbers } = rule;
  if (numbers.BYYEARDAY.length > 0) {
    if (weekdays.length + numbers.BYMONTH.length + numbers.BYMONTHDAY.length > 0)
      throw new NotSayable('BYYEARDAY beside other parts that name days');
    return { pick: { of: 'year', nth: [...new Set(numbers.BYYEARDAY)] } };
  }
  if (of === null || (weekdays.length > 0 && numbers.BYMONTHDAY.length > 0)) return limited(rule);
  if (of === 'week') return weekly(rule, start);
  if (numbers.BYMONTHDAY.length > 0) return onMonthDays(numbers.BYMONTHDAY);
  if (weekdays.length > 0) return onWeekdays(rule, of === 'year' && numbers.BYMONTH.length === 0 ? 'year' : 'month');
  const { month, day } = partsOf(start, 'day');
  const isOfStart = of === 'year' && numbers.BYMONTH.length === 0;
  return { dayOfMonth: fieldOf(DAY_OF_MONTH, [day]), ...(isOfStart && { month: fieldOf(MONTH, [month]) }) };
}

/** Each part leaves days out: both have to match. */
function limited({ weekdays, numbers }: RuleText): Days {
  if (weekdays.some(([ordinal]) => ordinal !== 0))
    throw new NotSayable('BYDAY with a number counts weeks of a month or a year, which is neither here');
  const { dayOfMonth = ALL, pick } = numbers.BYMONTHDAY.length === 0 ? {} : onMonthDays(numbers.BYMONTHDAY);
  if (pick) throw new NotSayable('days counted from the end of the month beside BYDAY, or in FREQ=DAILY');
  return {
    dayOfMonth,
    dayOfWeek: fieldOf(
      DAY_OF_WEEK,
      weekdays.map(([, day]) => weekdayNumber(day)),
    ),
  };
}

function weekly({ weekdays, numbers, weekStart, interval }: RuleText, start: string | null): Days {
  if (numbers.BYMONTHDAY.length > 0 || weekdays.some(([ordinal]) => ordinal !== 0))
    throw new NotSayable('FREQ=WEEKLY has no days of the month, and no numbers in BYDAY');
  const days = new Set(weekdays.map(([, day]) => weekdayNumber(day)));
  if (days.size === 0) days.add(partsOf(start, 'weekday').weekday);
  const begun = start === null ? null : partsOf(start, 'weekday').weekday;
  const isOneDay = days.size === 1 && (begun === null || days.has(begun));
  const isSameWeek = weekStart === 'MO' || (weekStart === 'SU' && !days.has(0) && begun !== 0);
  const countsWeeks = interval > 1 || numbers.BYSETPOS.length > 0;
  if (countsWeeks && !isOneDay && !isSameWeek)
    throw new NotSayable(`WKST=${weekStart}: the weeks of every and pick begin on Monday`);
  return { dayOfWeek: writtenField(DAY_OF_WEEK, days) };
}

/** -1 is the last day of the month. */
function onMonthDays(days: readonly number[]): Days {
  if (days.some((day) => day < -1)) return { pick: { of: 'month', nth: [...new Set(days)] } };
  const special = days.includes(-1) ? ['L'] : [];
  return { dayOfMonth: writtenField(DAY_OF_MONTH, new Set(days.filter((day) => day > 0)), special) };
}

function onWeekdays({ weekdays }: RuleText, of: 'month' | 'year'): Days {
  const plain = weekdays.filter(([ordinal]) => ordinal === 0).map(([, day]) => weekdayNumber(day));
  const counted = weekdays.filter(([ordinal]) => ordinal !== 0);
  const isNamed = of === 'month' && counted.every(([ordinal]) => ordinal >= -1 && ordinal <= 5);
  if (counted.length === 0 || isNamed) {
    const special = counted.map(
      ([ordinal, day]) => `${dayName(weekdayNumber(day))}${ordinal < 0 ? 'L' : `#${ordinal}`}`,
    );
    return { dayOfWeek: writtenField(DAY_OF_WEEK, new Set(plain), [...new Set(special)]) };
  }
  const kinds = new Set(weekdays.map(([, day]) => weekdayNumber(day)));
  if (plain.length > 0 || kinds.size > 1)
    throw new NotSayable(`BYDAY counts several weekdays of a ${of}, and pick counts the days of all together`);
  const nth = [...new Set(counted.map(([ordinal]) => ordinal))];
  return { dayOfWeek: writtenField(DAY_OF_WEEK, kinds), pick: { of, nth } };
}

function withPositions(
  { numbers }: RuleText,
  of: ForeignPick['of'] | null,
  before: ForeignPick | undefined,
): ForeignPick | undefined {
  if (numbers.BYSETPOS.length === 0) return before;
  if (of === null) throw new NotSayable('BYSETPOS counts within a week, a month or a year');
  if (before) throw new NotSayable('BYSETPOS beside days that pick already counts');
  return { of, nth: [...new Set(numbers.BYSETPOS)] };
}

const MAX_PERIODS = 366;

/** Null: in each period. */
function everyOf({ freq, interval }: RuleText, start: string | null, { month }: RuleDays): ForeignEvery | null {
  if (interval === 1 || freq === 'SECONDLY' || freq === 'MINUTELY' || freq === 'HOURLY') return null;
  if (start === null) throw new NotSayable('INTERVAL counts from DTSTART: put that line before the rule');
  const unit = ({ DAILY: 'day', WEEKLY: 'week', MONTHLY: 'month', YEARLY: 'month' } as const)[freq];
  const n = freq === 'YEARLY' ? interval * 12 : interval;
  if (n > MAX_PERIODS) throw new NotSayable(`every counts ${MAX_PERIODS} ${unit}s at most`);
  if (freq !== 'YEARLY') return { n, unit, from: start };
  if (month.only === null) throw new NotSayable('INTERVAL of years with more than one month');
  return { n, unit, from: `${start.slice(0, 4)}-${String(month.only).padStart(2, '0')}-01` };
}

function partsOf(date: string | null, what: string) {
  if (date === null) throw new NotSayable(`it takes its ${what} from DTSTART: put that line before the rule`);
  const [, month = 0, day = 0] = date.split('-').map(Number);
  return { month, day, weekday: new Date(`${date}T00:00:00Z`).getUTCDay() };
}

function fieldOf(field: Field, values: readonly number[]): Written {
  return values.length === 0 ? ALL : writtenField(field, new Set(values));
}
