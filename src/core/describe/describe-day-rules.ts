import type { Timing } from '../timing/timing.ts';
import { DAY_OF_WEEK } from '../cron/cron-fields.ts';
import { type DayPick, type Every, type OnExcluded, WEEKDAYS, type Weekday } from '../timing/day-rules.ts';
import { listed } from './describe-words.ts';

type DayRules = Pick<Timing, 'every' | 'exclude' | 'onExcluded' | 'pick'>;

/** What `every`, the weekdays of `exclude`, `pick` and `onExcluded` add to the description of an expression. */
export function dayRulesInWords({ every, exclude, onExcluded, pick }: DayRules): string {
  return [
    every === null ? '' : everyInWords(every),
    exclude?.weekdays ? `, not on ${listed(exclude.weekdays.map(plural))}` : '',
    pick === null ? '' : pickInWords(pick),
    onExcluded === 'skip' ? '' : MOVED[onExcluded],
  ].join('');
}

/** A week of fields of an expression begins on Sunday. */
function plural(day: Weekday): string {
  return `${DAY_OF_WEEK.full[(WEEKDAYS.indexOf(day) + 1) % 7]}s`;
}

const MOVED: Record<Exclude<OnExcluded, 'skip'>, string> = {
  next: '; instead of an excluded day, on the next one that is not excluded',
  previous: '; instead of an excluded day, on the one before that is not excluded',
};

function everyInWords({ n, unit, from }: Every): string {
  return `, only every ${n} ${unit}s from ${from} on`;
}

function pickInWords({ of, nth }: DayPick): string {
  return `, only on the ${listed(nth.map(placeInWords))} such day of the ${of}`;
}

function placeInWords(place: number): string {
  if (place > 0) return ordinal(place);
  return place === -1 ? 'last' : `${ordinal(-place)} to last`;
}

function ordinal(place: number): string {
  const teens = place % 100 > 10 && place % 100 < 14;
  return `${place}${teens ? 'th' : (['th', 'st', 'nd', 'rd'][place % 10] ?? 'th')}`;
}
