import { DateTime } from 'luxon';
import { type DayRange, dateOfDay, dayOfDate, FIRST_DAY, LAST_DAY } from '../../../core/exclusions/day-set.ts';
import type { DayNumber } from '../../../core/instant.ts';
import { reasonOf } from '../../../runtime/reason.ts';
import { CliError, failure, usageError } from '../../exit-codes.ts';
import type { Surroundings } from '../../surroundings.ts';
import { type Budget, rangeFrom, replacedDay, startsOf, wholeDaysOf } from './ics-days.ts';
import { type IcsEvent, type ReadEvent, eventsIn } from './ics-events.ts';

interface IcsHolidays {
  /** Dates and ranges, in their order; none overlap. */
  dates: string[];
  /** For people: what was read, and what was left out. */
  notes: string[];
}

interface IcsOptions {
  /** For messages. */
  file: string;
  years: DayRange;
  /** Texts in titles: only events with one of them, and none with one of these. */
  only?: readonly string[] | undefined;
  without?: readonly string[] | undefined;
}

const MAX_LENGTH = 4 * 1024 * 1024;
const MAX_STEPS = 100_000;

/** The days of these years on which an iCalendar file has events of whole days. @throws CliError that names what is wrong */
export function holidaysIn(text: string, options: IcsOptions): IcsHolidays {
  const { file, years } = options;
  if (text.length > MAX_LENGTH) throw failure(`${file}: longer than ${MAX_LENGTH} characters`);
  const { events, replaced: superseded } = eventsIn(text, file);
  const budget = { steps: MAX_STEPS };
  const replaced = replacedDays(events.filter(isRead));
  const left = emptySorts();
  const ranges: DayRange[] = [];
  for (const event of events) {
    const why = whyLeftOut(event, options);
    const found = why === null && isRead(event) ? rangesOfEvent(event, { years, budget, replaced }) : null;
    left[why ?? (found === null ? 'timed' : found.length === 0 ? 'outside' : 'taken')].push(event);
    for (const range of found ?? []) ranges.push(range);
  }
  const merged = withoutOverlaps(ranges);
  const days = merged.reduce((sum, { first, last }) => sum + last - first + 1, 0);
  const notes = [
    ...named(left.timed, 'has a time of day', 'have a time of day'),
    ...named(left.cancelled, 'is cancelled', 'are cancelled'),
    ...named(left.observance, 'is an observance by its description', 'are observances by their descriptions'),
    ...named(left.unasked, '--only and --without leave out', '--only and --without leave out'),
    ...(superseded === 0 ? [] : [`${countOf(superseded, 'event')} left out for a newer one with the same UID`]),
    ...(left.outside.length === 0 ? [] : [`${countOf(left.outside.length, 'event')} of other years left out`]),
    ...titlesOf(left.taken),
    `${countOf(days, 'day')} from ${countOf(left.taken.length, 'event')}, ${yearOf(years.first)} to ${yearOf(years.last)}`,
  ];
  return { dates: merged.map(entryOf), notes: notes.map((note) => `${file}: ${note}`) };
}

const emptySorts = () => ({
  timed: [] as IcsEvent[],
  cancelled: [] as IcsEvent[],
  observance: [] as IcsEvent[],
  unasked: [] as IcsEvent[],
  outside: [] as IcsEvent[],
  taken: [] as IcsEvent[],
});

/** Null: its days decide. */
function whyLeftOut(
  event: IcsEvent,
  { only, without = [] }: IcsOptions,
): 'cancelled' | 'unasked' | 'observance' | null {
  if (isRead(event) && isCancelled(event)) return 'cancelled';
  const title = event.title.toLowerCase();
  const has = (part: string) => title.includes(part.toLowerCase());
  if (without.some(has) || only?.some(has) === false) return 'unasked';
  return only === undefined && isObservance(event) ? 'observance' : null;
}

/** Google says so in the description only, and how to hide such days in its settings, in the language of the calendar. */
function isObservance({ lines }: IcsEvent): boolean {
  const description = lines.find((line) => /^DESCRIPTION[;:]/i.test(line)) ?? '';
  const text = description.slice(description.indexOf(':') + 1, MAX_DESCRIPTION);
  return /^observance\b/i.test(text) || /\bGoogle\b(?! Meet)/.test(text);
}

const MAX_DESCRIPTION = 2000;
const MAX_TITLES = 100;

/** So that a person sees at once what is no holiday of theirs. */
function titlesOf(taken: readonly IcsEvent[]): string[] {
  const titles = [...new Set(taken.map(({ title }) => (title.length > 60 ? `${title.slice(0, 60)}…` : title)))];
  if (titles.length === 0) return [];
  const more = titles.length > MAX_TITLES ? `, and ${titles.length - MAX_TITLES} more` : '';
  return [`taken: ${titles.slice(0, MAX_TITLES).join(', ')}${more}`];
}

function isRead(event: IcsEvent): event is ReadEvent {
  return event.component !== null;
}

/** `2026`, or `2026..2028`. Undefined: this year and the next two. @throws CliError */
export function yearsIn(text: string | undefined, { now, zone }: Pick<Surroundings, 'now' | 'zone'>): DayRange {
  const current = DateTime.fromMillis(now(), { zone: zone ?? 'UTC' }).year;
  const [, from = '', to = from] = /^(\d{4})(?:\.\.(\d{4}))?$/.exec(text ?? `${current}..${current + 2}`) ?? [];
  if (from === '' || from > to)
    throw usageError(`--years ${text} must be a year such as 2026, or several such as 2026..2028`);
  const first = dayOfDate(`${from}-01-01`) ?? FIRST_DAY;
  const last = dayOfDate(`${to}-12-31`) ?? LAST_DAY;
  return { first: Math.max(first, FIRST_DAY), last: Math.min(last, LAST_DAY) };
}

/** By the UID of their series. */
function replacedDays(events: readonly ReadEvent[]): Map<string, Set<DayNumber>> {
  const found = new Map<string, Set<DayNumber>>();
  for (const event of events) {
    const day = replacedDay(event);
    const uid = uidOf(event);
    if (day !== null) found.set(uid, (found.get(uid) ?? new Set()).add(day));
  }
  return found;
}

function uidOf({ component }: ReadEvent): string {
  return String(component.getFirstPropertyValue('uid'));
}

function isCancelled({ component }: ReadEvent): boolean {
  return /^cancelled$/i.test(String(component.getFirstPropertyValue('status')));
}

interface Looked {
  years: DayRange;
  budget: Budget;
  /** By the UID of their series. */
  replaced: ReadonlyMap<string, ReadonlySet<DayNumber>>;
}

/** The library has errors of its own, for rules that contradict themselves. */
function rangesOfEvent(event: ReadEvent, looked: Looked): DayRange[] | null {
  try {
    return rangesOf(event, looked);
  } catch (error) {
    if (error instanceof CliError) throw error;
    return event.refuse(reasonOf(error));
  }
}

/** Null: it has a time of day. */
function rangesOf(event: ReadEvent, { years, budget, replaced }: Looked): DayRange[] | null {
  const whole = wholeDaysOf(event);
  if (whole === null) return null;
  if (replacedDay(event) !== null) return [rangeFrom(whole.first, whole, years) ?? []].flat();
  const starts = [...startsOf(event, whole.first, years.last, budget)];
  return starts
    .filter((day) => replaced.get(uidOf(event))?.has(day) !== true)
    .flatMap((day) => rangeFrom(day, whole, years) ?? []);
}

/** Days that follow each other stay entries of their own: each is a holiday. */
function withoutOverlaps(ranges: readonly DayRange[]): DayRange[] {
  const merged: DayRange[] = [];
  for (const range of [...ranges].sort((a, b) => a.first - b.first)) {
    const before = merged.at(-1);
    if (before !== undefined && range.first <= before.last) before.last = Math.max(before.last, range.last);
    else merged.push({ ...range });
  }
  return merged;
}

function entryOf({ first, last }: DayRange): string {
  return first === last ? dateOfDay(first) : `${dateOfDay(first)}/${dateOfDay(last)}`;
}

function yearOf(day: DayNumber): string {
  return dateOfDay(day).slice(0, 4);
}

const MAX_NAMED = 5;

function named(events: readonly IcsEvent[], is: string, are: string): string[] {
  if (events.length === 0) return [];
  const names = events.slice(0, MAX_NAMED).map(({ name }) => name);
  const more = events.length > MAX_NAMED ? `, and ${events.length - MAX_NAMED} more` : '';
  const what = `${countOf(events.length, 'event')} left out that ${events.length === 1 ? is : are}`;
  return [`${what}: ${names.join(', ')}${more}`];
}

function countOf(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
