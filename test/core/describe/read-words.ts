/**
 * Reads a description as a user would, without knowing how it was made, to compare it with the fires.
 */
export interface ReadTiming {
  seconds: number[];
  minutes: number[];
  hours: number[];
  /** Times told one by one, in place of the three. */
  times: string[] | null;
  onDay(date: Date): boolean;
}

const AND = '(?:, and |, | and )';
const OR = '(?:, or |, | or )';
const list = (item: string, glue = AND): string => `(?:${item})(?:${glue}(?:${item}))*`;
const NUMBERS = list('\\d+(?: through \\d+)?');
const TIMES = list('\\d\\d:\\d\\d(?::\\d\\d)?');
const MONTHS = 'January February March April May June July August September October November December'.split(' ');
const WEEKDAYS = 'Sunday Monday Tuesday Wednesday Thursday Friday Saturday'.split(' ');
const NTH = 'first second third fourth fifth last'.split(' ');
const namesOf = (names: string[]): string => list(`(?:${names.join('|')})(?: through (?:${names.join('|')}))?`);
const DATES = list(`days? ${NUMBERS}|the last day|the last weekday|the weekday nearest day \\d+`);
const NTH_DAY = `the (?:${NTH.join('|')}) (?:${WEEKDAYS.join('|')})`;

export function readWords(text: string): ReadTiming {
  const reader = readerOf(text);
  const times = readTimes(reader);
  const onDay = readDays(reader);
  if (reader.rest() !== '') throw new Error(`not understood: “${reader.rest()}” in “${text}”`);
  return { ...times, onDay };
}

interface Reader {
  take: (pattern: string) => (string | undefined)[] | null;
  rest: () => string;
}

function readerOf(text: string): Reader {
  let left = text;
  return {
    take: (pattern) => {
      const found = new RegExp(`^${pattern}`).exec(left);
      if (found === null) return null;
      left = left.slice(found[0].length);
      return [...found];
    },
    rest: () => left,
  };
}

function readTimes({ take }: Reader): Omit<ReadTiming, 'onDay'> {
  const at = take(`At (${TIMES})(?=,|$)`);
  if (at) {
    const times = String(at[1]).split(new RegExp(AND));
    return {
      seconds: [],
      minutes: [],
      hours: [],
      times: times.map((time) => (time.length === 5 ? `${time}:00` : time)),
    };
  }
  const hourly = take('Every (?:(\\d+) )?hours?(?:, from (\\d\\d):(\\d\\d) through (\\d\\d):\\d\\d)?(?=,|$)');
  if (hourly) {
    const [, step = 1, from = 0, minute = 0, to = 23] = hourly;
    const hours = range(Number(from), Number(to), Number(step));
    return { seconds: [0], minutes: [Number(minute)], hours, times: null };
  }
  const first = readSixtieths(take);
  const { unit, set } = first;
  const within = take(`, in minutes? (${NUMBERS}) of the hour(?: in steps of (\\d+))?`);
  const minutes = within ? numbers(within[1], within[2]) : range(0, 59);
  const hours = readHours(take);
  return unit === 'second'
    ? { seconds: set, minutes, hours, times: null }
    : { seconds: [0], minutes: set, hours, times: null };
}

function readSixtieths(take: Reader['take']): { unit: string | undefined; set: number[] } {
  const every = take(
    'Every (?:(\\d+) )?(second|minute)s?(?: from (\\d+) through (\\d+) past the (?:minute|hour))?(?=,|$)',
  );
  if (every) {
    const [, step = 1, unit, from = 0, to = 59] = every;
    // “Every 45 minutes” alone would be an interval, which the next hour does not begin anew.
    if (every[3] === undefined && 60 % Number(step) !== 0) throw new Error(`not every ${step}`);
    return { unit, set: range(Number(from), Number(to), Number(step)) };
  }
  const at = take(`At (${NUMBERS}) (second|minute)s? past the (?:minute|hour)(?=,|$)`);
  if (at) return { unit: at[2], set: numbers(at[1]) };
  const on = take('On the (minute|hour)(?=,|$)');
  if (!on) throw new Error('no times');
  return { unit: on[1] === 'hour' ? 'minute' : 'second', set: [0] };
}

function readHours(take: Reader['take']): number[] {
  const begin = take(`, in the hours that begin at (${TIMES})(?=,|$)`);
  if (begin) return String(begin[1]).split(new RegExp(AND)).map(parseFloat);
  const windows = take(`, (${list('between \\d\\d:00 and \\d\\d:59')})(?=,|$)`);
  if (!windows) return range(0, 23);
  return Array.from(String(windows[1]).matchAll(/(\d\d):00 and (\d\d):59/g), ([, from, to]) =>
    range(Number(from), Number(to)),
  ).flat();
}

type OnDay = (date: Date) => boolean;

function readDays(reader: Reader): OnDay {
  const { take } = reader;
  const monthList = `(?:only in )?(${namesOf(MONTHS)})`;
  const scope = take(`, ${monthList}: `);
  const dates = take(`${scope ? '' : ', '}on (${DATES}) of the month(?=,|$)`);
  const either = dates && take(', or (?=on )');
  const weekdays = readWeekdays(reader, either !== null);
  const months = scope ?? take(`, ${monthList}$`);
  const inMonth = months ? around(months[1], MONTHS) : null;
  const onDate = dates ? dateOf(String(dates[1])) : null;
  return (date) => {
    if (inMonth && !inMonth.includes(date.getUTCMonth())) return false;
    const [one, other] = [onDate?.(date), weekdays?.(date)];
    return either ? one === true || other === true : one !== false && other !== false;
  };
}

function readWeekdays({ take }: Reader, begun: boolean): OnDay | null {
  const comma = begun ? '' : ', ';
  const names = namesOf(WEEKDAYS);
  const nth = `(${list(NTH_DAY)}) of the month(?=,|$)`;
  const onlyIf = take(`, only if it is (${list(`a \\w+|${NTH_DAY}`, OR)}) of the month(?=,|$)`);
  if (onlyIf) {
    const items = String(onlyIf[1]).split(new RegExp(OR));
    return (date) => items.some((item) => (item.startsWith('a ') ? isNamed(item.slice(2), date) : isNth(item, date)));
  }
  const mixed = take(`${comma}on every (${names}) and on ${nth}`);
  const special = mixed ? null : take(`${comma}on ${nth}`);
  const plain = mixed ?? (special ? null : take(`${comma}(?:only on |on )?(${names})(?=,|$)`));
  if (!plain && !special) return null;
  const every = plain ? around(plain[1], WEEKDAYS) : [];
  const items = (mixed?.[2] ?? special?.[1] ?? '').split(new RegExp(AND));
  return (date) => every.includes(date.getUTCDay()) || items.some((item) => isNth(item, date));
}

const isNamed = (name: string, date: Date): boolean => WEEKDAYS[date.getUTCDay()] === name;

function isNth(item: string, date: Date): boolean {
  const [, nth, name = ''] = item.split(' ');
  if (!isNamed(name, date)) return false;
  const day = date.getUTCDate();
  return nth === 'last' ? day + 7 > lengthOf(date) : NTH[Math.ceil(day / 7) - 1] === nth;
}

const lengthOf = (date: Date): number =>
  new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 0)).getUTCDate();

function dateOf(text: string): OnDay {
  const numbered = new RegExp(`days? (${NUMBERS})`).exec(text.replace(/nearest day \d+/g, ''));
  const days = numbered ? numbers(numbered[1]) : [];
  const nearest = Array.from(text.matchAll(/nearest day (\d+)/g), ([, day]) => Number(day));
  return (date) => {
    const day = date.getUTCDate();
    if (days.includes(day)) return true;
    if (text.includes('the last day') && day === lengthOf(date)) return true;
    const workdays = range(1, lengthOf(date)).filter((other) => isWorkday(date, other));
    if (text.includes('the last weekday') && day === workdays.at(-1)) return true;
    return nearest.some((wanted) => wanted <= lengthOf(date) && nearestOf(workdays, wanted) === day);
  };
}

function isWorkday(date: Date, day: number): boolean {
  const weekday = new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), day)).getUTCDay();
  return weekday > 0 && weekday < 6;
}

const nearestOf = (days: number[], wanted: number): number | undefined =>
  days.toSorted((one, other) => Math.abs(one - wanted) - Math.abs(other - wanted))[0];

/** Names and stretches of them, which may go over the end. */
function around(text: string | undefined, names: string[]): number[] {
  return String(text)
    .split(new RegExp(AND))
    .flatMap((item) => {
      const [from = 0, to = from] = item.split(' through ').map((name) => names.indexOf(name));
      return range(from, to < from ? to + names.length : to).map((index) => index % names.length);
    });
}

function numbers(text: string | undefined, step: string | undefined = '1'): number[] {
  return String(text)
    .split(new RegExp(AND))
    .flatMap((item) => {
      const [from = 0, to = from] = item.split(' through ').map(Number);
      return range(from, to, Number(step));
    });
}

function range(from: number, to: number, step = 1): number[] {
  const values: number[] = [];
  for (let value = from; value <= to; value += step) values.push(value);
  return values;
}
