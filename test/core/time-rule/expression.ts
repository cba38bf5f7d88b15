/** What an expression selects, as plain sets: read from the grammar's own words, field by field. */
export interface Selection {
  seconds: number[];
  minutes: Set<number>;
  hours: Set<number>;
  /** Of a local date, counted in days since 1970-01-01. */
  day: (dayNumber: number) => boolean;
  /** Every hour is selected. */
  periodic: boolean;
  hasSeconds: boolean;
}

/** Reads what the generator writes. Anything else is a fault of the generator, and throws. */
export function select(expression: string): Selection {
  const fields = (NICKNAMES[expression.toLowerCase()] ?? expression).split(' ');
  const hasSeconds = fields.length === 6;
  const [second, minute, hour, dayOfMonth, month, dayOfWeek] = (hasSeconds ? fields : ['0', ...fields]) as Six;
  const hours = numbers(hour, 0, 23, []);
  return {
    seconds: [...numbers(second, 0, 59, [])].sort((one, other) => one - other),
    minutes: numbers(minute, 0, 59, []),
    hours,
    day: days(dayOfMonth, numbers(month, 1, 12, MONTHS), dayOfWeek),
    periodic: hours.size === 24,
    hasSeconds,
  };
}

type Six = [string, string, string, string, string, string];

const NICKNAMES: Record<string, string> = {
  '@yearly': '0 0 1 1 *',
  '@annually': '0 0 1 1 *',
  '@monthly': '0 0 1 * *',
  '@weekly': '0 0 * * 0',
  '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *',
  '@hourly': '0 * * * *',
};
const MONTHS = ['JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC'];
const WEEKDAYS = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT'];
const DAY_MS = 86_400_000;

function numbers(field: string, low: number, high: number, names: string[]): Set<number> {
  const found = new Set<number>();
  for (const part of field.split(',')) {
    const [range = '', step = '1'] = part.split('/');
    const [from = '', to] = range === '*' ? [String(low), String(high)] : range.split('-');
    const first = valueOf(from, low, names);
    const last = to === undefined ? first : valueOf(to, low, names);
    if (first > last || last > high || first < low) throw new Error(`the generator wrote ${field}`);
    for (let value = first; value <= last; value += Number(step)) found.add(value);
  }
  return found;
}

function valueOf(text: string, low: number, names: string[]): number {
  const named = names.indexOf(text.toUpperCase());
  if (named >= 0) return named + low;
  if (!/^\d+$/.test(text)) throw new Error(`the generator wrote ${text}`);
  return Number(text);
}

function days(dayOfMonth: string, months: Set<number>, weekdayField: string): Selection['day'] {
  const both = weekdayField.startsWith('+');
  const dayOfWeek = weekdayField.replace('+', '');
  const free = (field: string): boolean => field === '*' || field === '*/1';
  const monthDay = anyOf(dayOfMonth.split(',').map(monthDayTest));
  const weekday = anyOf(dayOfWeek.split(',').map(weekdayTest));
  const selected = (date: Date): boolean => {
    if (!months.has(date.getUTCMonth() + 1)) return false;
    if (free(dayOfMonth) && free(dayOfWeek)) return true;
    if (free(dayOfMonth)) return weekday(date);
    if (free(dayOfWeek)) return monthDay(date);
    return both ? monthDay(date) && weekday(date) : monthDay(date) || weekday(date);
  };
  const known = new Map<number, boolean>();
  return (dayNumber) => {
    let answer = known.get(dayNumber);
    if (answer === undefined) {
      answer = selected(new Date(dayNumber * DAY_MS));
      known.set(dayNumber, answer);
    }
    return answer;
  };
}

type DateTest = (date: Date) => boolean;

function anyOf(tests: DateTest[]): DateTest {
  return (date) => tests.some((test) => test(date));
}

function monthDayTest(part: string): DateTest {
  if (part === 'L') return (date) => date.getUTCDate() === lastDayOf(date);
  if (part === 'LW') return (date) => date.getUTCDate() === nearestWorkday(date, lastDayOf(date));
  if (part.endsWith('W')) {
    const asked = Number(part.slice(0, -1));
    return (date) => asked <= lastDayOf(date) && date.getUTCDate() === nearestWorkday(date, asked);
  }
  const found = numbers(part, 1, 31, []);
  return (date) => found.has(date.getUTCDate());
}

function weekdayTest(part: string): DateTest {
  const last = /^(.+)L$/i.exec(part);
  if (last) {
    const wanted = weekdayOf(last[1]);
    return (date) => date.getUTCDay() === wanted && date.getUTCDate() + 7 > lastDayOf(date);
  }
  const [name = '', nth] = part.split('#');
  if (nth !== undefined) {
    const wanted = weekdayOf(name);
    return (date) => date.getUTCDay() === wanted && Math.ceil(date.getUTCDate() / 7) === Number(nth);
  }
  const found = numbers(part, 0, 7, WEEKDAYS);
  return (date) => found.has(date.getUTCDay()) || (date.getUTCDay() === 0 && found.has(7));
}

function weekdayOf(text = ''): number {
  return valueOf(text, 0, WEEKDAYS) % 7;
}

function lastDayOf(date: Date): number {
  return new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 0)).getUTCDate();
}

/** Of the same month: a Saturday gives way to the Friday before, a Sunday to the Monday after, unless the month ends between. */
function nearestWorkday(date: Date, day: number): number {
  const last = lastDayOf(date);
  const weekday = new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), day)).getUTCDay();
  if (weekday === 6) return day === 1 ? 3 : day - 1;
  if (weekday === 0) return day === last ? day - 2 : day + 1;
  return day;
}
