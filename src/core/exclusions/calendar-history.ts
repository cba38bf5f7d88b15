import type { Instant } from '../instant.ts';
import { type DayRange, readDateEntry } from './date-entries.ts';
import { type DaySet, daySetOf } from './day-set.ts';

/** A version of a calendar: it judges the occurrences after `at`, up to and with the `at` of the next version. */
export interface CalendarVersion {
  version: number;
  at: Instant;
  days: DaySet;
}

/**
 * The versions of a calendar in the order of time. No version excludes what occurs before the first. Exception: if the
 * first one has a higher number than 1, the earlier versions are no longer kept, or were not read, so the first applies
 * to their time too.
 */
export interface CalendarHistory {
  id: string;
  versions: readonly CalendarVersion[];
}

/** By id. */
export type Calendars = ReadonlyMap<string, CalendarHistory>;

export const NO_CALENDARS: Calendars = new Map();

/** The days of entries. They were checked when they were stored; anything that is no entry is left out. */
export function daySetOfEntries(entries: readonly string[]): DaySet {
  return daySetOf(rangesOf(entries).flatMap((range) => range ?? []));
}

/** The ranges in the same order; null: it is no entry. */
export function rangesOf(entries: readonly string[]): (DayRange | null)[] {
  return entries.map((entry) => {
    const range = readDateEntry(entry);
    return typeof range === 'string' ? null : range;
  });
}
