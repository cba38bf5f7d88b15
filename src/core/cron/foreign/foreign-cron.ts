import { DAY_OF_MONTH, DAY_OF_WEEK, HOUR, MINUTE, MONTH, SECOND } from '../cron-fields.ts';
import {
  type ForeignFields,
  type Notation,
  type Written,
  ALL,
  cronFields,
  dayName,
  itemValues,
  listField,
  NotSayable,
  valueIn,
  writtenField,
  yearsWritten,
  zoneField,
} from './foreign-fields.ts';

const CRON = { range: '-', stepsOnStar: true, names: 'all' } as const;
const QUARTZ: Notation = { ...CRON, system: 'Quartz', sunday: 1, wraps: true, stepsFromValue: true };
const EVENTBRIDGE: Notation = { ...QUARTZ, system: 'EventBridge', wraps: false };
const NOMAD: Notation = { ...CRON, system: 'Nomad', sunday: 0, wraps: false, stepsFromValue: true };

/** Second, minute, hour, day of month, month, day of week, and a year that may be missing. @throws NotSayable */
export function quartzFields(text: string, zone: string | null): ForeignFields {
  const fields = wordsOf(text);
  if (fields.length !== 6 && fields.length !== 7)
    throw new NotSayable(`Quartz has 6 fields, or 7 with the year; this has ${fields.length}`);
  return oneDayField(fields, QUARTZ, zone);
}

/** Minute, hour, day of month, month, day of week, year: what stands in `cron(…)`. @throws NotSayable */
export function eventBridgeFields(text: string, zone: string | null): ForeignFields {
  const fields = wordsOf(text);
  if (fields.length !== 6) throw new NotSayable(`EventBridge has 6 fields; this has ${fields.length}`);
  return oneDayField(['0', ...fields], EVENTBRIDGE, zone);
}

/** 5 fields; 6 end with the year; 7 begin with the second as well; or a nickname. @throws NotSayable */
export function nomadFields(text: string, zone: string | null): ForeignFields {
  if (/^@(?:yearly|annually|monthly|weekly|daily|hourly)$/i.test(text)) return { cron: text, ...zoneField(zone) };
  const fields = wordsOf(text).map((field) => (field === '?' ? '*' : field));
  if (fields.length < 5 || fields.length > 7)
    throw new NotSayable(`Nomad has 5 fields, 6 with the year, or 7 with the second; this has ${fields.length}`);
  return read(fields.length === 7 ? fields : ['0', ...fields], NOMAD, { zone, days: 'either' });
}

/** @throws NotSayable where not just one of the day fields is `?` */
function oneDayField(fields: readonly string[], notation: Notation, zone: string | null): ForeignFields {
  const { system } = notation;
  const open = [fields[3], fields[5]].filter((field) => field === '?').length;
  if (open !== 1)
    throw new NotSayable(
      `${system} wants ? in just one of the day fields` +
        (open === 0 && fields.length === 6 ? '; if it is Spring’s, its six fields mean the same here' : ''),
    );
  const named = fields.map((field, index) => (field === '?' && (index === 3 || index === 5) ? '*' : field));
  const fromEnd = /^L-(\d{1,2})$/i.exec(named[3] ?? '')?.[1];
  if (fromEnd === undefined) return read(named, notation, { zone, days: 'both' });
  const nth = [-1 - Number(fromEnd)];
  const daily = named.map((field, index) => (index === 3 ? '*' : field));
  return { ...read(daily, notation, { zone, days: 'both' }), pick: { of: 'month', nth } };
}

function wordsOf(text: string): string[] {
  return text.split(/[ \t]+/).filter((word) => word !== '');
}

/** Second to day of week, and the year. */
function read(
  fields: readonly string[],
  notation: Notation,
  { zone, days }: { zone: string | null; days: 'both' | 'either' },
): ForeignFields {
  const [second = '', minute = '', hour = '', dayOfMonth = '', month = '', dayOfWeek = '', year = '*'] = fields;
  const parts = {
    second: listField(SECOND, second, notation),
    minute: listField(MINUTE, minute, notation),
    hour: listField(HOUR, hour, notation),
    dayOfMonth: daysOfMonth(dayOfMonth, notation),
    month: listField(MONTH, month, notation),
    dayOfWeek: weekdays(dayOfWeek, notation),
    years: yearsWritten(year),
  };
  return cronFields(parts, days, zone);
}

/** Also `L`, `LW` and `15W`. */
function daysOfMonth(text: string, notation: Notation): Written {
  if (text === '*') return ALL;
  const items = text.toUpperCase().split(',');
  const special = items.filter((item) => /^(?:LW?|([1-9]|[12]\d|3[01])W)$/.test(item));
  if (special.includes('LW') && items.length > 1) throw new NotSayable('LW stands alone here, not in a list');
  const plain = items.filter((item) => !special.includes(item));
  const values = new Set(plain.flatMap((item) => itemValues(DAY_OF_MONTH, item, notation)));
  return writtenField(DAY_OF_MONTH, values, special);
}

/** Also `6L`, `6#3`, and `L` for Saturday. */
function weekdays(text: string, notation: Notation): Written {
  if (text === '*') return ALL;
  const values = new Set<number>();
  const special: string[] = [];
  for (const item of text.toUpperCase().split(',')) {
    const [, day = '', which = ''] = /^([A-Z]{3}|\d)(L|#[1-5])$/.exec(item) ?? [];
    const number = day === '' ? null : valueIn(DAY_OF_WEEK, day, notation);
    if (item === 'L' && notation.sunday === 1) values.add(6);
    else if (number !== null) special.push(`${dayName(number)}${which}`);
    else for (const value of itemValues(DAY_OF_WEEK, item, notation)) values.add(value);
  }
  return writtenField(DAY_OF_WEEK, values, special);
}

const NICKNAMES: Readonly<Record<string, string>> = {
  '@yearly': 'H H H H *',
  '@annually': 'H H H H *',
  '@monthly': 'H H H * *',
  '@weekly': 'H H * * H',
  '@daily': 'H H * * *',
  '@midnight': 'H H(0-2) * * *',
  '@hourly': 'H * * * *',
};

const ITEM = /^(?:\*|H(?:\(\d{1,2}-\d{1,2}\))?|\d{1,2}-\d{1,2})(?:\/\d{1,2})?$|^\d{1,2}$/;

/** The box of a job's triggers: lines, the first of which may name the zone. @throws NotSayable */
export function jenkinsFields(text: string, standard: string | null): ForeignFields {
  const lines = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'));
  const named = lines.map((line) => /^TZ=(\S+)$/.exec(line)?.[1]);
  if (named.slice(1).some((zone) => zone !== undefined)) throw new NotSayable('TZ= stands in the first line only');
  const zone = named[0] ?? standard;
  const expressions = [...new Set((named[0] === undefined ? lines : lines.slice(1)).map(expressionOf))];
  const [only = ''] = expressions;
  if (only === '') throw new NotSayable('there is no line of five fields');
  return { cron: expressions.length === 1 ? only : expressions, ...zoneField(zone) };
}

/** Jenkins wants both of two restricted day fields to match. */
function expressionOf(line: string): string {
  const fields = (NICKNAMES[line.toLowerCase()] ?? line).split(/[ \t]+/);
  if (fields.length !== 5) throw new NotSayable(`Jenkins has 5 fields, or a nickname: “${line}”`);
  const odd = fields.flatMap((field) => field.split(',')).find((item) => !ITEM.test(item));
  if (odd !== undefined) throw new NotSayable(`“${odd}” is no value of Jenkins`);
  const [minute, hour, dayOfMonth = '', month, dayOfWeek = ''] = fields;
  const plus = [dayOfMonth, dayOfWeek].every((field) => !/^\*(?:\/1)?$/.test(field)) ? '+' : '';
  return [minute, hour, dayOfMonth, month, plus + dayOfWeek].join(' ');
}

const CELERY: Notation = {
  system: 'Celery',
  range: '-',
  sunday: 0,
  wraps: true,
  stepsFromValue: false,
  stepsOnStar: true,
  names: 'weekdays',
};

const FIELDS = {
  minute: MINUTE,
  hour: HOUR,
  day_of_month: DAY_OF_MONTH,
  month_of_year: MONTH,
  day_of_week: DAY_OF_WEEK,
} as const;

/** What stands in `crontab(…)`: each field has to match. @throws NotSayable */
export function celeryCrontab(text: string, zone: string | null): ForeignFields {
  const given = argumentsOf(text, ['minute', 'hour']);
  const unknown = [...given.keys()].find((name) => !Object.hasOwn(FIELDS, name));
  if (unknown !== undefined) throw new NotSayable(`crontab has no field ${unknown}`);
  const read = (name: keyof typeof FIELDS) =>
    listField(FIELDS[name], (given.get(name) ?? '*').replaceAll(' ', ''), CELERY);
  const parts = {
    second: writtenField(SECOND, new Set([0])),
    minute: read('minute'),
    hour: read('hour'),
    dayOfMonth: read('day_of_month'),
    month: read('month_of_year'),
    dayOfWeek: read('day_of_week'),
    years: null,
  };
  return cronFields(parts, 'both', zone);
}

const UNITS: Readonly<Record<string, number>> = {
  days: 86_400,
  seconds: 1,
  minutes: 60,
  hours: 3600,
  weeks: 604_800,
};

/** What stands in `timedelta(…)`. @throws NotSayable */
export function timedelta(text: string): ForeignFields {
  let seconds = 0;
  for (const [name, count] of argumentsOf(text, ['days', 'seconds'])) {
    const unit = UNITS[name];
    if (unit === undefined) throw new NotSayable(`an interval has no ${name} here: it is a number of seconds`);
    seconds += Number(count) * unit;
  }
  if (!Number.isSafeInteger(seconds) || seconds < 1) throw new NotSayable('it is no number of whole seconds');
  return { everySeconds: seconds };
}

const ARGUMENT = /[ \t]*(?:([a-z_]+)[ \t]*=[ \t]*)?(?:'([^']*)'|"([^"]*)"|([\d.+*-]+))[ \t]*(?:,|$)/y;

/** Python's arguments. `places`: names of those without one. Other ones differ between versions. */
function argumentsOf(text: string, places: readonly string[]): Map<string, string> {
  const given = new Map<string, string>();
  const left = text.trimEnd();
  for (let at = 0, place = 0; at < left.length; place += 1) {
    ARGUMENT.lastIndex = at;
    const [found, named, single, double, plain] = ARGUMENT.exec(left) ?? [];
    if (found === undefined) throw new NotSayable(`“${left.slice(at, at + 30)}” is no name and value that can be read`);
    const name = named ?? places[place];
    if (name === undefined) throw new NotSayable('versions of Celery differ about the order of the fields: name them');
    if (given.has(name)) throw new NotSayable(`${name} is given twice`);
    given.set(name, single ?? double ?? plain ?? '');
    at += found.length;
  }
  return given;
}
