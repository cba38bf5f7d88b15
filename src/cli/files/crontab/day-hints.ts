import { parseField, valuesOf } from '../../../core/cron/cron-parse.ts';
import { type Field, DAY_OF_MONTH, DAY_OF_WEEK } from '../../../core/cron/cron-fields.ts';
import { writtenField } from '../../../core/cron/foreign/foreign-fields.ts';

/** The five fields of a line, as firelock writes them. */
interface Line {
  cron: string;
  command: string;
}

/**
 * What a field of firelock says better than the line does: a test of the day before its command, and two day fields that are often
 * meant together. The line is carried over as it is: what the shell makes of a test depends on its zone and on what follows.
 */
export function dayHints({ cron, command }: Line): string[] {
  const fields = cron.split(' ');
  if (fields.length !== 5) return [];
  const hints = dateTestsIn(command).map((test) => hintFor(test, fields));
  return [...new Set(hints)].filter((hint) => hint !== null).concat(eitherHints(fields));
}

function hintFor({ asks, values }: DateTest, fields: readonly string[]): string | null {
  const [, , monthDays = '', , weekday = ''] = fields;
  const without = (cron: string | null) => (cron === null ? '' : `: ${cron} fires on these days without that test`);
  switch (asks) {
    case 'tomorrow':
      return `its command asks whether tomorrow is the first of a month: ${cronWith(fields, 'L', '*')} without that test fires on the last day only`;
    case 'week':
      return `its command asks for the number of the week, which jumps at the end of a year: every: {n: 2, unit: week, from: DATE} without that test counts weeks from a date of yours`;
    case 'count':
      return `its command counts days: every: {n: 2, unit: day, from: DATE} without that test counts them from a date of yours`;
    case 'weekday':
      return `its command asks for the day of the week${without(values && onWeekdays(fields, monthDays, weekday, values))}`;
    case 'monthDay':
      return `its command asks for the day of the month${without(values && onMonthDays(fields, monthDays, weekday, values))}`;
  }
}

/** Null: firelock says it in another way, or not at all. */
function onWeekdays(fields: readonly string[], monthDays: string, weekday: string, values: ReadonlySet<number>) {
  const [only = 0] = values;
  if (!isAll(weekday)) return null;
  const nth = values.size === 1 ? weekOf(monthDays) : null;
  if (nth !== null) return cronWith(fields, '*', `${only}#${nth}`);
  const { text } = writtenField(DAY_OF_WEEK, values);
  return cronWith(fields, monthDays, isAll(monthDays) ? text : `+${text}`);
}

function onMonthDays(fields: readonly string[], monthDays: string, weekday: string, values: ReadonlySet<number>) {
  if (!isAll(monthDays) && !isAll(weekday)) return null;
  const left = isAll(monthDays) ? values : valuesBoth(DAY_OF_MONTH, monthDays, values);
  if (left.size === 0) return null;
  const { text } = writtenField(DAY_OF_MONTH, left);
  if (isAll(weekday)) return cronWith(fields, text, '*');
  const nth = isOneDay(weekday) ? weekOf(text) : null;
  return nth === null ? cronWith(fields, text, `+${weekday}`) : cronWith(fields, '*', `${weekday}#${nth}`);
}

function valuesBoth(field: Field, text: string, values: ReadonlySet<number>): Set<number> {
  const read = parseField(field, text, '');
  return new Set('fault' in read ? [] : valuesOf(field, read).filter((value) => values.has(value)));
}

/** 2 for `8-14`; null: the days are no n-th week of a month. */
function weekOf(monthDays: string): number | null {
  const [, from, to] = /^(\d{1,2})-(\d{1,2})$/.exec(monthDays) ?? [];
  const first = Number(from);
  return from !== undefined && Number(to) - first === 6 && first % 7 === 1 ? (first + 6) / 7 : null;
}

/** cron fires on either of two days: `0 9 1-7 * 1` on the first seven days, and on each Monday. */
function eitherHints(fields: readonly string[]): string[] {
  const [, , monthDays = '', , weekday = ''] = fields;
  const nth = isOneDay(weekday) ? weekOf(monthDays) : null;
  if (nth === null) return [];
  return [
    `it fires on the days ${monthDays} and, besides, on each day ${weekday} of the week, as cron does; if only that weekday among these days is meant, write ${cronWith(fields, '*', `${weekday}#${nth}`)}`,
  ];
}

function isOneDay(weekday: string): boolean {
  return /^(?:[0-7]|[a-z]{3})$/i.test(weekday);
}

export function isAll(field: string): boolean {
  return field === '*' || field === '*/1';
}

function cronWith([minute, hour, , month]: readonly string[], monthDays: string, weekday: string): string {
  return `cron: "${[minute, hour, monthDays, month, weekday].join(' ')}"`;
}

/** A test of the date that decides whether the rest of a command runs. */
interface DateTest {
  asks: 'weekday' | 'monthDay' | 'tomorrow' | 'week' | 'count';
  /** Days on which it runs, for `weekday` (Sunday is 0) and `monthDay`; null: the test is not so simple. */
  values: ReadonlySet<number> | null;
}

const MAX_LENGTH = 4096;
const TEST = /\s*(?:\[\[?\s(.*?)\s\]\]?|(?:\/usr)?(?:\/bin\/)?test\s(.*?)|\(\((.*?)\)\))\s*(&&|\|\||;\s*then\b)/sy;

/** Of the tests that stand before a command, one after the other. */
function dateTestsIn(command: string): DateTest[] {
  const text = command.slice(0, MAX_LENGTH).replace(/^\s*if\s+(?=\S)/, '');
  const found: DateTest[] = [];
  for (let at = 0; ;) {
    TEST.lastIndex = at;
    const [all, bracket, word, sum, then = ''] = TEST.exec(text) ?? [];
    if (all === undefined) return found;
    found.push(...testsOf(bracket ?? word ?? sum ?? '', then === '||'));
    if (then === '||') return found;
    at += all.length;
  }
}

const DATE = /(?:\$\(|`)\s*(?:\/[\w/]*\/)?date\s([^)`]*)[)`]/g;

function testsOf(test: string, isNegated: boolean): DateTest[] {
  return [...test.matchAll(DATE)].flatMap(([call, asked = '']): DateTest[] => {
    const [, format = ''] = /\+["']?%([-_^]?[a-zA-Z])["']?\s*(?:\s|$)/.exec(`${asked} `) ?? [];
    const isTomorrow = /(?:-d|--date)[ =]*["']?(?:tomorrow|next day|\+? ?1 ?day)/.test(asked);
    const letter = format.at(-1) ?? '';
    if (isTomorrow) return 'de'.includes(letter) && letter !== '' ? [{ asks: 'tomorrow', values: null }] : [];
    if (/(?:-d|--date|-v)/.test(asked) || letter === '') return [];
    if ('VUW'.includes(letter)) return [{ asks: 'week', values: null }];
    const rest = test.replace(call, ' DATE ');
    if ('js'.includes(letter)) return /%\s*\d/.test(rest) ? [{ asks: 'count', values: null }] : [];
    const asks = 'uwaA'.includes(letter) ? 'weekday' : 'de'.includes(letter) ? 'monthDay' : null;
    return asks === null ? [] : [{ asks, values: askedDays(rest, letter, isNegated) }];
  });
}

const COMPARED = /^["']?\s*DATE\s*["']?\s*(-eq|-ne|-lt|-le|-gt|-ge|==?|!=)\s*["']?(\w{1,9})["']?$/;

/** Null: it is no comparison with one value. `letter`: what date is asked for. */
function askedDays(test: string, letter: string, isNegated: boolean): Set<number> | null {
  const [, operator = '', text = ''] = COMPARED.exec(test.trim()) ?? [];
  const isName = letter.toLowerCase() === 'a';
  const value = isName ? DAY_OF_WEEK.names.indexOf(text.slice(0, 3).toUpperCase()) : Number(text);
  if (operator === '' || (isName ? value < 0 || operator.startsWith('-') : !/^\d{1,2}$/.test(text))) return null;
  const field = 'de'.includes(letter) ? DAY_OF_MONTH : DAY_OF_WEEK;
  const days = Array.from({ length: field.max - field.min + 1 }, (_, index) => field.min + index);
  // %u counts Sunday as 7, and %w as 0.
  const asked = (day: number) => (letter === 'u' && day === 0 ? 7 : day);
  const chosen = days.filter((day) => holds(asked(day), operator, value) !== isNegated);
  return chosen.length === 0 || chosen.length === days.length ? null : new Set(chosen);
}

function holds(day: number, operator: string, value: number): boolean {
  switch (operator) {
    case '-eq':
    case '=':
    case '==':
      return day === value;
    case '-ne':
    case '!=':
      return day !== value;
    case '-lt':
      return day < value;
    case '-le':
      return day <= value;
    case '-gt':
      return day > value;
    default:
      return day >= value;
  }
}
