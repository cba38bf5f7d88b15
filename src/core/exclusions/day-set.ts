import type { DayNumber } from '../instant.ts';
import { type DayRange, FIRST_DAY, LAST_DAY } from './date-entries.ts';

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
