import { DAY_MS } from '../instant.ts';
import { Cron } from 'croner';
import { LRUCache } from 'lru-cache';

/** The selected days of a month that has `length` days and begins on `weekday` (0 = Sunday): bit 0 is the 1st. */
export type DayPattern = (length: number, weekday: number) => number;

const LENGTHS = [28, 29, 30, 31] as const;
/** 28 kinds of month in all, so a pattern is 28 numbers. */
const KINDS = LENGTHS.length * 7;
const UNKNOWN = -1;

/**
 * Croner computes the days, and each of its objects holds 83 KB: only a few are kept, while the months of their pattern
 * are computed.
 */
const croners = new LRUCache<string, Cron>({ max: 16 });
const patterns = new LRUCache<string, DayPattern>({ max: 4096 });

export const everyDay: DayPattern = (length) => 2 ** length - 1;

/**
 * The pattern of `DOM DOW`, both as croner writes them. Croner alone decides which days a pattern selects. Its answer
 * depends only on the kind of month, so each kind is computed once.
 */
export function dayPatternOf(dayOfMonth: string, dayOfWeek: string): DayPattern {
  if (dayOfMonth === '*' && dayOfWeek === '*') return everyDay;
  const pattern = `0 0 ${dayOfMonth} * ${dayOfWeek}`;
  const known = patterns.get(pattern);
  if (known) return known;
  // If a day must match both fields, only the selected weekdays are candidates; they cost croner much less than days like 15W.
  const both = dayOfMonth !== '*' && dayOfWeek.startsWith('+');
  const candidates = both ? dayPatternOf('*', dayOfWeek.slice(1)) : everyDay;
  const masks = new Array<number>(KINDS).fill(UNKNOWN);
  const dayPattern: DayPattern = (length, weekday) => {
    const kind = (length - 28) * 7 + weekday;
    const mask = masks[kind] ?? UNKNOWN;
    if (mask !== UNKNOWN) return mask;
    return (masks[kind] = ask(pattern, monthOfKind(length, weekday), candidates(length, weekday)));
  };
  patterns.set(pattern, dayPattern);
  return dayPattern;
}

/** Computes what the pattern would else compute when first asked, with a kind of month in each step. */
export function* everyKindOf(pattern: DayPattern): Generator<void, void, void> {
  for (const length of LENGTHS) {
    for (let weekday = 0; weekday < 7; weekday += 1) {
      pattern(length, weekday);
      yield;
    }
  }
}

/** Day by day: croner's own search for the next match takes up to 28 ms if there is none. */
function ask(pattern: string, first: number, candidates: number): number {
  let mask = 0;
  for (let day = 0; candidates >>> day !== 0; day += 1) {
    if (((candidates >>> day) & 1) === 0) continue;
    if (cronerOf(pattern).match(new Date(first + day * DAY_MS))) mask |= 1 << day;
  }
  return mask;
}

function cronerOf(pattern: string): Cron {
  let cron = croners.get(pattern);
  if (!cron) {
    cron = new Cron(pattern, { mode: '5-part', utcOffset: 0, paused: true });
    croners.set(pattern, cron);
  }
  return cron;
}

/** Among 28 consecutive years within a century, each kind of February occurs, and so do those of January and April. */
function monthOfKind(length: number, weekday: number): number {
  const month = length < 30 ? 1 : length === 30 ? 3 : 0;
  for (let year = 2001; year <= 2028; year += 1) {
    const first = Date.UTC(year, month, 1);
    const days = (Date.UTC(year, month + 1, 1) - first) / DAY_MS;
    if (days === length && new Date(first).getUTCDay() === weekday) return first;
  }
  throw new Error(`no month has ${length} days`);
}
