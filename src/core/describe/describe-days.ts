import { type FieldValues, type ParsedCron, valuesOf } from '../cron/cron-parse.ts';
import { DAY_OF_MONTH, DAY_OF_WEEK, MIN_RUN, MONTH, runItems, runsOf } from '../cron/cron-fields.ts';
import { type DayPick, type Every, type OnExcluded, type Timing, type Weekday, WEEKDAYS } from '../timing/timing.ts';

/** `A`, `A and B`, `A, B, and C`. */
export function listed(items: readonly (string | number)[], word = 'and'): string {
  if (items.length < 3) return items.join(` ${word} `);
  return `${items.slice(0, -1).join(', ')}, ${word} ${items.at(-1)}`;
}

/** The days, such as `, on day 1 of the month, or on Monday`; empty: every day. */
export function daysInWords(parsed: ParsedCron): string {
  const months = monthsInWords(parsed.month);
  const days = dayClauses(parsed);
  const bothKinds = days.length > 1 && !parsed.bothDays;
  // After “or on Monday”, a reader would take the months as those of the Mondays alone.
  if (bothKinds && months !== '') return `, ${months}: ${days.join(', ')}`;
  return [...days, months]
    .filter((text) => text !== '')
    .map((text) => `, ${text}`)
    .join('');
}

/** One clause for each day field that excludes days. */
function dayClauses({ dayOfMonth, dayOfWeek, bothDays }: ParsedCron): string[] {
  const [allDays, allWeekdays] = [isFull(dayOfMonth, 31), isFull(dayOfWeek, 7)];
  // One field is enough, and one of them contains all days, though it is not written as a star.
  const eitherIsAll = !bothDays && ((allDays && !dayOfMonth.any) || (allWeekdays && !dayOfWeek.any));
  if ((allDays && allWeekdays) || eitherIsAll) return [];
  if (allWeekdays) return [`on ${daysOfMonth(dayOfMonth)} of the month`];
  const weekdays = weekdaysOf(dayOfWeek);
  if (allDays) return [alone(weekdays)];
  const also = bothDays ? onlyIf(weekdays) : `or ${on(weekdays)}`;
  return [`on ${daysOfMonth(dayOfMonth)} of the month`, also];
}

const isFull = (values: FieldValues, size: number): boolean =>
  values.any || valuesOf(size === 7 ? DAY_OF_WEEK : DAY_OF_MONTH, values).length === size;

/** `days 1 and 15, the last day, and the weekday nearest day 3`. */
function daysOfMonth(values: FieldValues): string {
  const set = valuesOf(DAY_OF_MONTH, values);
  const numbers = listed(runItems(runsOf(set), String));
  const special = [...new Set(values.special)]
    .toSorted((one, other) => (parseInt(one) || 99) - (parseInt(other) || 99))
    .map((text) => SPECIAL_DAYS[text] ?? `the weekday nearest day ${parseInt(text)}`);
  return listed([...(set.length === 0 ? [] : [`day${set.length === 1 ? '' : 's'} ${numbers}`]), ...special]);
}

const SPECIAL_DAYS: Record<string, string | undefined> = { L: 'the last day', LW: 'the last weekday' };

interface Weekdays {
  /** Every one of these weekdays, in runs; a week is a circle, so Friday through Monday is one run. */
  runs: number[][];
  /** `the second Friday`. */
  special: string[];
}

const NTH = ['', 'first', 'second', 'third', 'fourth', 'fifth'];

const weekdayName = (day: number): string => DAY_OF_WEEK.full[day % 7] ?? '';

function weekdaysOf(values: FieldValues): Weekdays {
  const set = new Set(valuesOf(DAY_OF_WEEK, values));
  const special = [...new Set(values.special)]
    .toSorted(byDayAndNumber)
    .filter((text) => !set.has(parseInt(text)))
    .map((text) => `the ${NTH[Number(text.at(-1))] ?? 'last'} ${weekdayName(parseInt(text))}`);
  // From Monday to Sunday, which is 7: a week that ends on Sunday reads better than a divided one.
  const fromMonday = new Set(Array.from(set, (day) => (day === 0 ? 7 : day)));
  return { runs: runsAround(fromMonday, 7), special };
}

/** `6L` after `6#5`; Sunday is the last. */
function byDayAndNumber(one: string, other: string): number {
  const order = (text: string): number => (parseInt(text) || 7) * 10 + (Number(text.at(-1)) || 9);
  return order(one) - order(other);
}

/** Runs in a circle of the values 1 … size: the last run may go on at the first value. */
function runsAround(set: ReadonlySet<number>, size: number): number[][] {
  const circle = Array.from({ length: size }, (_, index) => index + 1);
  const start = circle.find((value) => set.has(value) && !set.has(value === 1 ? size : value - 1)) ?? 1;
  const turned = circle.map((value) => start + value - 1);
  return runsOf(turned.filter((value) => set.has(value > size ? value - size : value)));
}

/** A single run is described without `only on`. */
function alone(weekdays: Weekdays): string {
  const { runs, special } = weekdays;
  if (special.length > 0) return on(weekdays);
  const isStretch = runs.length === 1 && (runs[0]?.length ?? 0) >= MIN_RUN;
  return `${isStretch ? '' : 'only on '}${names(runs)}`;
}

function on({ runs, special }: Weekdays): string {
  if (special.length === 0) return `on ${names(runs)}`;
  const nth = `on ${listed(special)} of the month`;
  return runs.length === 0 ? nth : `on every ${names(runs)} and ${nth}`;
}

function onlyIf({ runs, special }: Weekdays): string {
  if (special.length === 0) return `only on ${names(runs)}`;
  const plain = runs.flat().map((day) => `a ${weekdayName(day)}`);
  return `only if it is ${listed([...plain, ...special], 'or')} of the month`;
}

const names = (runs: number[][]): string => listed(runItems(runs, weekdayName));

function monthsInWords(values: FieldValues): string {
  const set = new Set(valuesOf(MONTH, values));
  if (set.size === 12) return '';
  const runs = runsAround(set, 12);
  const text = listed(runItems(runs, (month) => MONTH.full[(month - 1) % 12] ?? ''));
  return runs.length === 1 && set.size >= MIN_RUN ? text : `only in ${text}`;
}

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
