import type { Instant } from '../instant.ts';
import { type DayRange, readDateEntry } from './date-entries.ts';
import { type DaySet, daySetOf } from './day-set.ts';

/** What a calendar said from `at` on: it judges what occurs after `at`, up to and with the `at` of the next version. */
export interface CalendarVersion {
  version: number;
  at: Instant;
  days: DaySet;
}

/**
 * The versions of a calendar in the order of time. What occurs before the first version is excluded by none. An exception is a first one
 * with a higher number than 1: the versions before it are not kept any more, or are not asked about, so it holds for them too.
 */
export interface CalendarHistory {
  id: string;
  versions: readonly CalendarVersion[];
}

/** By id. */
export type Calendars = ReadonlyMap<string, CalendarHistory>;

export const NO_CALENDARS: Calendars = new Map();

/** The days of entries that were checked when they were stored; what is none is left out. */
export function daySetOfEntries(entries: readonly string[]): DaySet {
  return daySetOf(rangesOf(entries).flatMap((range) => range ?? []));
}

/** In the same order; null: it is no entry. */
export function rangesOf(entries: readonly string[]): (DayRange | null)[] {
  return entries.map((entry) => {
    const range = readDateEntry(entry);
    return typeof range === 'string' ? null : range;
  });
}
