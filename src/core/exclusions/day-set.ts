import { type DayNumber, DAY_MS } from '../instant.ts';

/** Both ends included. */
export interface DayRange {
  first: DayNumber;
  last: DayNumber;
}

/** The most dates and ranges that a schedule, or a calendar, names. */
export const MAX_DATES = 2000;

/** Reads `2026-12-24`, or `2026-12-24/2027-01-02`. For any other text, answers its fault. */
export function readDateEntry(text: string): DayRange | string {
  const [, from, to = from] = ENTRY.exec(text) ?? [];
  if (from === undefined || to === undefined) return NO_ENTRY;
  const [first, last] = [dayOfDate(from), dayOfDate(to)];
  if (first === null) return `names a day that does not exist: ${from}`;
  if (last === null) return `names a day that does not exist: ${to}`;
  if (first < FIRST_DAY || last < FIRST_DAY || first > LAST_DAY || last > LAST_DAY)
    return 'must lie between 2000 and 2100';
  return first <= last ? { first, last } : `ends before it begins: ${to} is earlier than ${from}`;
}

const ENTRY = /^(\d{4}-\d\d-\d\d)(?:\/(\d{4}-\d\d-\d\d))?$/;
const NO_ENTRY =
  'must be a date such as 2026-12-24, or a range such as 2026-12-24/2027-01-02, whose both ends belong to it';
export const FIRST_DAY: DayNumber = Date.UTC(2000, 0, 1) / DAY_MS;
export const LAST_DAY: DayNumber = Date.UTC(2100, 11, 31) / DAY_MS;

/**
 * Null: there is no such day. Computed by arithmetic: writing an instant and comparing the text takes ten times as
 * long, and there are thousands.
 */
export function dayOfDate(date: string): DayNumber | null {
  const [year, month, day] = [Number(date.slice(0, 4)), Number(date.slice(5, 7)), Number(date.slice(8, 10))];
  if (month < 1 || month > 12 || day < 1 || day > lengthOf(year, month)) return null;
  return Date.UTC(year, month - 1, day) / DAY_MS;
}

/** `2026-12-24` */
export function dateOfDay(day: DayNumber): string {
  return new Date(day * DAY_MS).toISOString().slice(0, 10);
}

function lengthOf(year: number, month: number): number {
  if (month !== 2) return 30 + ((month + (month >> 3)) & 1);
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
}

/**
 * Days, one bit for each. Bits rather than sorted ranges: it takes microseconds to join seventeen lists of 2,000 dates,
 * or to find the end of a run of days, in any arrangement. A century takes 5 KB.
 */
export interface DaySet {
  /** The day of the first bit; a multiple of 32. */
  start: DayNumber;
  words: Uint32Array;
}

const NO_DAYS: DaySet = { start: 0, words: new Uint32Array(0) };

export function daySetOf(ranges: readonly DayRange[]): DaySet {
  if (ranges.length === 0) return NO_DAYS;
  const start = ranges.reduce((least, { first }) => Math.min(least, first), Infinity);
  const end = ranges.reduce((most, { last }) => Math.max(most, last), -Infinity) + 1;
  const set = emptySet(start, end);
  for (const { first, last } of ranges) addRange(set, first - set.start, last - set.start);
  return set;
}

/** The days of these weekdays (bit 0: Monday), as long as dates can be excluded. */
export function daySetOfWeekdays(weekdays: number): DaySet {
  const known = weekdaySets.get(weekdays);
  if (known) return known;
  const set = emptySet(FIRST_DAY - 62, LAST_DAY + 62);
  for (let day = set.start; day < endOf(set); day += 1)
    if ((weekdays >>> weekdayOf(day)) & 1) addRange(set, day - set.start, day - set.start);
  weekdaySets.set(weekdays, set);
  return set;
}

/** There are 127 at most, of 5 KB each. */
const weekdaySets = new Map<number, DaySet>();

/** 0: Monday. 1970-01-01 was a Thursday. */
export function weekdayOf(day: DayNumber): number {
  return (((day + 3) % 7) + 7) % 7;
}

export function unionOf(sets: readonly DaySet[]): DaySet {
  const [only = NO_DAYS, ...others] = sets.filter(({ words }) => words.length > 0);
  if (others.length === 0) return only;
  const parts = [only, ...others];
  const union = emptySet(Math.min(...parts.map(({ start }) => start)), Math.max(...parts.map(endOf)));
  for (const { start, words } of parts) {
    const shift = (start - union.start) / BITS;
    for (let index = 0; index < words.length; index += 1)
      union.words[shift + index] = wordAt(union, shift + index) | (words[index] ?? 0);
  }
  return union;
}

export function hasDay(set: DaySet, day: DayNumber): boolean {
  const bit = day - set.start;
  return bit >= 0 && ((wordAt(set, Math.floor(bit / BITS)) >>> (bit % BITS)) & 1) === 1;
}

/** The first day at or after one that does not belong to the set. */
export function nextDayOutside(set: DaySet, day: DayNumber): DayNumber {
  if (!hasDay(set, day)) return day;
  const bit = day - set.start;
  let index = Math.floor(bit / BITS);
  // The days of this word from this one on that do not belong to it.
  let left = (~wordAt(set, index) >>> (bit % BITS)) << (bit % BITS);
  while (left === 0) {
    index += 1;
    left = ~wordAt(set, index);
  }
  return set.start + index * BITS + (31 - Math.clz32(left & -left));
}

/** The last day at or before one that does not belong to the set. */
export function lastDayOutside(set: DaySet, day: DayNumber): DayNumber {
  if (!hasDay(set, day)) return day;
  const bit = day - set.start;
  let index = Math.floor(bit / BITS);
  const above = BITS - 1 - (bit % BITS);
  // The days of this word up to this one that do not belong to it.
  let left = (~wordAt(set, index) << above) >>> above;
  while (left === 0) {
    index -= 1;
    left = ~wordAt(set, index) >>> 0;
  }
  return set.start + index * BITS + (31 - Math.clz32(left));
}

const BITS = 32;
const ALL = 0xffff_ffff;

function emptySet(first: DayNumber, end: DayNumber): DaySet {
  const start = Math.floor(first / BITS) * BITS;
  return { start, words: new Uint32Array(Math.ceil((end - start) / BITS)) };
}

function endOf({ start, words }: DaySet): DayNumber {
  return start + words.length * BITS;
}

/** Zero outside of the set. */
function wordAt({ words }: DaySet, index: number): number {
  return words[index] ?? 0;
}

function addRange(set: DaySet, first: number, last: number): void {
  for (let index = Math.floor(first / BITS); index * BITS <= last; index += 1) {
    const from = Math.max(first - index * BITS, 0);
    const to = Math.min(last - index * BITS, BITS - 1);
    set.words[index] = wordAt(set, index) | ((ALL << from) & (ALL >>> (BITS - 1 - to)));
  }
}
