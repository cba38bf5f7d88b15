import { isZone } from '../../zones/zone.ts';
import { DAY_OF_MONTH, DAY_OF_WEEK, HOUR, MINUTE, MONTH, SECOND } from '../cron-fields.ts';
import {
  ALL,
  type ForeignFields,
  type Notation,
  NotSayable,
  type Written,
  cronFields,
  itemValues,
  listField,
  writtenField,
  yearsWritten,
} from './foreign-fields.ts';

const SYSTEMD: Notation = {
  system: 'systemd',
  range: '..',
  sunday: 0,
  wraps: false,
  stepsFromValue: true,
  stepsOnStar: false,
  names: 'weekdays',
};

/** As `man systemd.time` has them. A week begins on Monday, where cron’s `@weekly` is Sunday. */
const WORDS: Readonly<Record<string, string>> = {
  minutely: '*-*-* *:*:00',
  hourly: '*-*-* *:00:00',
  daily: '*-*-* 00:00:00',
  monthly: '*-*-01 00:00:00',
  weekly: 'Mon *-*-* 00:00:00',
  yearly: '*-01-01 00:00:00',
  annually: '*-01-01 00:00:00',
  quarterly: '*-01,04,07,10-01 00:00:00',
  semiannually: '*-01,07-01 00:00:00',
};

const WEEKDAYS = /^[A-Za-z]{3,9}(?:(?:,|\.\.)[A-Za-z]{3,9})*$/;
const TIME = /^([\d*.,/]+):([\d*.,/]+)(?::([\d*.,/]+))?$/;
const DATE = /^(?:([\d*.,/]+)-)?([\d*.,/]+)([-~])([\d*.,/]+)$/;

/** What `OnCalendar=` has: weekdays, date, time and zone, each of which may be missing. @throws NotSayable */
export function systemdFields(text: string, standard: string | null): ForeignFields {
  const { weekdays, date, time, zone } = partsOf(text);
  const [, hour = '0', minute = '0', second = '0'] = TIME.exec(time ?? '0:0') ?? [];
  const [, year = '*', month = '*', sign = '-', day = '*'] = DATE.exec(date ?? '*-*-*') ?? [];
  const dayOfWeek = weekdays === undefined ? ALL : listField(DAY_OF_WEEK, weekdays, SYSTEMD);
  const parts = {
    second: listField(SECOND, second, SYSTEMD),
    minute: listField(MINUTE, minute, SYSTEMD),
    hour: listField(HOUR, hour, SYSTEMD),
    dayOfMonth: sign === '-' ? listField(DAY_OF_MONTH, day, SYSTEMD) : ALL,
    month: listField(MONTH, month, SYSTEMD),
    dayOfWeek,
    years: yearsWritten(year, '..'),
  };
  const fields = (changed: Partial<typeof parts>) => cronFields({ ...parts, ...changed }, 'both', zone ?? standard);
  if (sign === '-') return fields({});
  const fromEnd = daysFromEnd(day, dayOfWeek);
  return 'nth' in fromEnd ? { ...fields({}), pick: { of: 'month', nth: fromEnd.nth } } : fields(fromEnd);
}

function partsOf(text: string) {
  const words = text.trim().split(/[ \t]+/);
  const known = WORDS[(words[0] ?? '').toLowerCase()];
  if (known !== undefined) words.splice(0, 1, ...known.split(' '));
  const take = (form: RegExp) => (form.test(words[0] ?? '') ? words.shift() : undefined);
  const [weekdays, date, time, zone] = [take(WEEKDAYS), take(DATE), take(TIME), words.shift()];
  if (zone !== undefined && !isZone(zone)) throw new NotSayable(`“${zone}” is no zone, and no part of systemd’s times`);
  if (words.length > 0) throw new NotSayable(`“${words[0]}” follows the zone`);
  if ((weekdays ?? date ?? time) === undefined) throw new NotSayable('it has no weekday, no date and no time');
  return { weekdays, date, time, zone };
}

/** `~1` is the last day of the month. */
function daysFromEnd(
  day: string,
  dayOfWeek: Written,
): { nth: number[] } | { dayOfMonth?: Written; dayOfWeek?: Written } {
  const { text, only } = dayOfWeek;
  if (text === '*') {
    const nth = [...new Set(day.split(',').flatMap((item) => placesFromEnd(item)))];
    return nth.length === 1 && nth[0] === -1 ? { dayOfMonth: writtenField(DAY_OF_MONTH, new Set(), ['L']) } : { nth };
  }
  if (only !== null && /^0?7\/1$/.test(day)) return { dayOfWeek: { ...dayOfWeek, text: `${text}L` } };
  throw new NotSayable('a weekday beside days counted from the end of the month');
}

/** From a place on, a step leads towards the end. */
function placesFromEnd(item: string): number[] {
  const [from = '', step] = item.split('/');
  if (step === undefined) return itemValues(DAY_OF_MONTH, item, SYSTEMD).map((place) => -place);
  const [first = 0] = itemValues(DAY_OF_MONTH, from, SYSTEMD);
  const size = Math.max(1, Number(step) || 0);
  return Array.from({ length: Math.ceil(first / size) }, (_, index) => index * size - first);
}
