import { DateTime } from 'luxon';
import { type Cron, type Field, DAY_OF_WEEK, runItems, runsOf, stepOf } from '../cron-fields.ts';
import { isoInstant, LATEST } from '../../instant.ts';

/** Fields of a schedule that mean what an expression of another system means. */
export interface ForeignFields {
  cron?: Cron;
  everySeconds?: number;
  at?: string;
  timezone?: string;
  every?: ForeignEvery;
  pick?: ForeignPick;
  startAt?: string;
  endAt?: string;
  /** Whole days of the zone. */
  exclude?: { dates: string[] };
  /** How often it fires in all, which no field of a schedule says: `core/time/counted-end.ts` makes an end of it. */
  count?: number;
}

export interface ForeignEvery {
  n: number;
  unit: 'day' | 'week' | 'month';
  from: string;
}

export interface ForeignPick {
  of: 'week' | 'month' | 'year';
  nth: number[];
}

/** Says why an expression cannot be said exactly by fields of a schedule. */
export class NotSayable extends Error {
  override readonly name = 'NotSayable';
}

/** One field of an expression, as firelock writes it. */
export interface Written {
  text: string;
  /** Its one value. Null: it has several, or one that depends on the month or on the schedule. */
  only: number | null;
  /** It was anything but a star. */
  isRestricted: boolean;
}

/** Values of a field, and days that no set of numbers can express. */
export function writtenField(field: Field, values: ReadonlySet<number>, special: readonly string[] = []): Written {
  const isFull = values.size === field.max - field.min + 1;
  const set = special.length > 0 && values.size === 0 ? [] : [setText(field, values)];
  const [first = 0] = values;
  const only = values.size === 1 && special.length === 0 ? first : null;
  return { text: isFull ? '*' : [...set, ...special].join(','), only, isRestricted: true };
}

export const ALL: Written = { text: '*', only: null, isRestricted: false };

function setText(field: Field, values: ReadonlySet<number>): string {
  if (field === DAY_OF_WEEK) {
    // From Monday on, with Sunday as the last, so that a weekend is no divided one.
    const fromMonday = Array.from(values, (day) => (day === 0 ? 7 : day)).sort((a, b) => a - b);
    return runItems(runsOf(fromMonday), dayName).join(',').replaceAll(' through ', '-');
  }
  const set = [...values].sort((a, b) => a - b);
  const [first = 0, last = 0] = [set[0], set.at(-1)];
  const step = set.length > 2 ? (stepOf(set) ?? 1) : 1;
  if (step > 1) return first === field.min && last + step > field.max ? `*/${step}` : `${first}-${last}/${step}`;
  return runItems(runsOf(set), String).join(',').replaceAll(' through ', '-');
}

/** Sunday is 0 or 7. */
export function dayName(day: number): string {
  return DAY_OF_WEEK.names[day % 7] ?? '';
}

/** The first and the last year; null: all. */
type Years = readonly [number, number] | null;

interface CronParts {
  second: Written;
  minute: Written;
  hour: Written;
  dayOfMonth: Written;
  month: Written;
  dayOfWeek: Written;
  years: Years;
}

/** `both`: a day has to match both day fields; `either`: one of them is enough where both are restricted. */
export function cronFields(parts: CronParts, days: 'both' | 'either', zone: string | null): ForeignFields {
  const { second, minute, hour, dayOfMonth, month, dayOfWeek, years } = parts;
  const moment = momentOf(parts);
  if (moment !== null) return { at: instantIn(moment, zone) };
  const restricted = [dayOfMonth, dayOfWeek].filter(({ text }) => text !== '*');
  const isAllDays = days === 'either' && dayOfMonth.isRestricted && dayOfWeek.isRestricted && restricted.length < 2;
  const plus = days === 'both' && restricted.length === 2 ? '+' : '';
  const [monthDays, weekdays] = isAllDays ? ['*', '*'] : [dayOfMonth.text, `${plus}${dayOfWeek.text}`];
  const texts = [second.text, minute.text, hour.text, monthDays, month.text, weekdays];
  return {
    cron: texts.slice(second.text === '0' ? 1 : 0).join(' '),
    ...zoneField(zone),
    ...yearBounds(years, zone),
  };
}

/** The one local time of an expression that names its year; null: it has several. */
function momentOf({ second, minute, hour, dayOfMonth, month, dayOfWeek, years }: CronParts): string | null {
  const [year, last] = years ?? [];
  const numbers = [month, dayOfMonth, hour, minute, second].map(({ only }) => only);
  if (year === undefined || year !== last || numbers.includes(null) || dayOfWeek.text !== '*') return null;
  const [months, days, hours, minutes, seconds] = numbers.map((value) => String(value).padStart(2, '0'));
  return `${year}-${months}-${days}T${hours}:${minutes}:${seconds}`;
}

export function zoneField(zone: string | null): { timezone?: string } {
  return zone === null ? {} : { timezone: zone };
}

const [FIRST_YEAR, LAST_YEAR] = [2000, new Date(LATEST).getUTCFullYear() - 1];

function yearBounds(years: Years, zone: string | null): Pick<ForeignFields, 'startAt' | 'endAt'> {
  if (years === null) return {};
  const [first, last] = years;
  if (last < FIRST_YEAR || first > LAST_YEAR)
    throw new NotSayable(`firelock knows the years ${FIRST_YEAR} to ${LAST_YEAR}`);
  return {
    ...(first > FIRST_YEAR && { startAt: instantIn(`${first}-01-01T00:00:00`, zone) }),
    ...(last < LAST_YEAR && { endAt: instantIn(`${last + 1}-01-01T00:00:00`, zone) }),
  };
}

/** `2027`, `2027-2029`, `2027,2028`. @throws NotSayable unless they follow each other */
export function yearsWritten(text: string, range = '-'): Years {
  if (text === '*' || text === '?') return null;
  const years = new Set<number>();
  for (const item of text.split(',')) {
    const [from = '', to = from, ...rest] = item.split(range);
    if (!/^\d{4}$/.test(from) || !/^\d{4}$/.test(to) || rest.length > 0 || from > to)
      throw new NotSayable(`the years “${text}” are neither *, nor years that follow each other`);
    for (let year = Number(from); year <= Number(to); year += 1) years.add(year);
  }
  const [first, last] = [Math.min(...years), Math.max(...years)];
  if (last - first + 1 !== years.size)
    throw new NotSayable(`the years ${text} do not follow each other, and startAt and endAt bound one period`);
  return [first, last];
}

/** A local time, such as `2027-01-31T09:00:00`, as an instant. @throws NotSayable */
export function instantIn(local: string, zone: string | null): string {
  const there = DateTime.fromISO(local, { zone: zone ?? 'UTC' });
  const where = zone ?? 'UTC';
  if (!there.isValid) throw new NotSayable(`${local} is no local time of ${where}`);
  const [first = there] = there.getPossibleOffsets();
  if (there.toFormat("yyyy-MM-dd'T'HH:mm:ss") !== local)
    throw new NotSayable(`${local} does not exist in ${where}: the clocks pass over it`);
  return isoInstant(Math.min(first.toMillis(), there.toMillis()));
}

/** How a system writes the values of a field. */
export interface Notation {
  /** Of people's words: “Quartz”. */
  system: string;
  range: '-' | '..';
  /** The number of Sunday. Only where it is 0 is it 7 as well. */
  sunday: 0 | 1;
  /** A range may run over the end. */
  wraps: boolean;
  /** `5/15` goes on to the end. */
  stepsFromValue: boolean;
  stepsOnStar: boolean;
  names: 'weekdays' | 'all';
}

const ITEM = /^(?:(\*)|([A-Za-z]+|\d{1,4})(?:(-|\.\.)([A-Za-z]+|\d{1,4}))?)(?:\/(\d{1,4}))?$/;

/** The values of one item of a list. @throws NotSayable */
export function itemValues(field: Field, item: string, notation: Notation): number[] {
  const { system, range, wraps, stepsFromValue, stepsOnStar } = notation;
  const refuse = (why: string): never => {
    throw new NotSayable(`${field.label} “${item}”: ${why}`);
  };
  const [found, star, from = '', sign, to, stepText] = ITEM.exec(item) ?? [];
  if (found === undefined || (sign !== undefined && sign !== range)) return refuse(`no value of ${system}`);
  const step = Number(stepText ?? 1);
  if (step < 1) return refuse('a step is at least 1');
  if (star !== undefined) {
    if (stepText !== undefined && !stepsOnStar) return refuse(`${system} steps from a value, as 0/2`);
    return stepped(field.min, field.max, step);
  }
  const first = valueIn(field, from, notation);
  if (to === undefined && stepText !== undefined && !stepsFromValue)
    return refuse(`${system} knows a step on * or a range only`);
  const last = to === undefined ? (stepText === undefined ? first : field.max) : valueIn(field, to, notation);
  if (first === null || last === null) return refuse(`no value of ${system}`);
  // A week may end on the Sunday that begins it.
  const endsWeek = field === DAY_OF_WEEK && notation.sunday === 0 && last === 0 && from !== to;
  const end = endsWeek && (first > 0 || to === '7') ? 7 : last;
  if (first > end && !wraps) return refuse('a range goes upwards');
  const size = field.max - field.min + 1;
  const reached = stepped(first, first > end ? end + size : end, step);
  return reached.map((value) => ((value - field.min) % size) + field.min);
}

function stepped(from: number, to: number, step: number): number[] {
  return Array.from({ length: Math.floor((to - from) / step) + 1 }, (_, index) => from + index * step);
}

/** As firelock counts it; null: no value of the field. */
export function valueIn(field: Field, text: string, { sunday, names }: Notation): number | null {
  if (/^\d+$/.test(text)) {
    const number = Number(text) - (field === DAY_OF_WEEK ? sunday : 0);
    if (field === DAY_OF_WEEK && number === 7 && sunday === 0) return 0;
    return number >= field.min && number <= field.max ? number : null;
  }
  if (names === 'weekdays' && field !== DAY_OF_WEEK) return null;
  const index = field.full.findIndex((name) => name.toLowerCase().startsWith(text.toLowerCase()));
  return index < 0 || text.length < 3 ? null : field.min + index;
}

/** A list of items without special days. @throws NotSayable */
export function listField(field: Field, text: string, notation: Notation): Written {
  if (text === '*') return ALL;
  const values = new Set(text.split(',').flatMap((item) => itemValues(field, item, notation)));
  return writtenField(field, values);
}
