import { type Selection, select } from './expression.ts';
import { type LocalClock, localClock } from './local-clock.ts';

/** A schedule with rules of days, in words as a user writes them. */
export interface DayCase {
  expressions: string[];
  zone: string;
  /** Fires strictly after it are asked for. */
  from: number;
  /** Since when the schedule has its fire times. */
  since: number;
  dates: string[];
  weekdays: string[];
  /** Of each calendar: what it said from an instant on. */
  versions: { at: number; dates: string[] }[][];
  every: { n: number; unit: 'day' | 'week' | 'month'; from: string } | null;
  pick: { of: 'week' | 'month' | 'quarter' | 'year'; nth: number[] } | null;
  onExcluded: 'skip' | 'next' | 'previous';
}

export interface ExpectedFire {
  at: number;
  /** The date that it was moved from; null: it is at home on its day. */
  from: string | null;
}

const DAY = 1440;
const DAY_MS = 86_400_000;

/** The first `count` fires after `from`, by walking `days` dates: no sets of bits, no arithmetic with periods. */
export function walkDates(one: DayCase, count: number, days: number): ExpectedFire[] {
  const walk = walkOf(one);
  const today = Math.floor(walk.clock(Math.floor(one.from / 60_000)) / DAY);
  const found = new Map<number, Set<string>>();
  for (let day = today - 33; day < today + days; day += 1) {
    const known = [...found.keys()].sort((a, b) => a - b);
    if (known.length >= count && dayOf(walk, known[count - 1] ?? 0) + 33 < day) break;
    const to = isKept(walk, day) ? targetOf(walk, day) : null;
    if (to === null) continue;
    // Where each fire is judged at its own moment, any of them may be left out.
    const most = walk.pick === null && walk.onExcluded === 'skip' ? Infinity : count;
    for (const at of firesOn(walk, day, to, most)) {
      if (walk.pick === null && walk.onExcluded === 'skip' && isOut(walk, dayOf(walk, at), at)) continue;
      found.set(at, (found.get(at) ?? new Set()).add(to === day ? '' : dateOf(day)));
    }
  }
  return [...found]
    .sort(([a], [b]) => a - b)
    .slice(0, count)
    .map(([at, sources]) => ({ at, from: sources.has('') ? null : ([...sources].sort()[0] ?? null) }));
}

export function walkOf(one: DayCase): Walk {
  return { ...one, clock: localClock(one.zone), selections: one.expressions.map(select) };
}

export interface Walk extends DayCase {
  clock: LocalClock;
  selections: Selection[];
}

const dates = new Map<number, string>();

export function dateOf(day: number): string {
  const known = dates.get(day) ?? new Date(day * DAY_MS).toISOString().slice(0, 10);
  dates.set(day, known);
  return known;
}

export function dayOf({ clock }: Walk, at: number): number {
  return Math.floor(clock(Math.floor(at / 60_000)) / DAY);
}

/** Selected, in its turn, and a date that there was. */
export function isKept(walk: Walk, day: number): boolean {
  if (!walk.selections.some((one) => one.day(day))) return false;
  return isInTurn(walk, day) && shownAt(walk, day * DAY + DAY / 2) !== null;
}

/** Counts the periods one by one. */
function isInTurn({ every }: Walk, day: number): boolean {
  if (every === null) return true;
  if (dateOf(day) < every.from) return false;
  const first = new Date(`${every.from}T00:00Z`);
  const date = new Date(day * DAY_MS);
  if (every.unit === 'month') {
    const months =
      (date.getUTCFullYear() - first.getUTCFullYear()) * 12 + date.getUTCMonth() - first.getUTCMonth();
    return months % every.n === 0;
  }
  if (every.unit === 'day') return ((date.getTime() - first.getTime()) / DAY_MS) % every.n === 0;
  return ((mondayOf(date) - mondayOf(first)) / (7 * DAY_MS)) % every.n === 0;
}

function mondayOf(date: Date): number {
  return date.getTime() - ((date.getUTCDay() + 6) % 7) * DAY_MS;
}

/** By comparing texts. `at`: what calendars said before it. */
export function isOut({ dates, weekdays, versions }: Walk, day: number, at: number): boolean {
  const date = dateOf(day);
  if (weekdays.includes(['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'][new Date(date).getUTCDay()] ?? ''))
    return true;
  const said = versions.flatMap((ofOne) => ofOne.filter((version) => version.at < at).at(-1)?.dates ?? []);
  return [...dates, ...said].some((entry) => {
    const [first = '', last = first] = entry.split('/');
    return first <= date && date <= last;
  });
}

function targetOf(walk: Walk, day: number): number | null {
  if (walk.pick !== null) return isPicked(walk, day) ? day : null;
  if (walk.onExcluded === 'skip') return day;
  const begins = judgedAt(walk, day);
  if (walk.onExcluded === 'next') return nearest(walk, day, 1, begins);
  // As time goes by: what each edit leaves in force until the next one.
  const edits = [...new Set(walk.versions.flat().map(({ at }) => at))].sort((a, b) => a - b);
  for (const edit of [...edits, Infinity]) {
    if (edit <= walk.since) continue;
    const to = nearest(walk, day, -1, edit);
    const first = to === null ? Infinity : Math.min(...firesOn({ ...walk, from: -Infinity }, day, to, 1));
    if (Math.min(first, begins) <= edit) return to;
  }
  throw new Error('time does not end');
}

export function nearest(walk: Walk, day: number, step: 1 | -1, at: number): number | null {
  for (let away = 0; away <= 31; away += 1) {
    const to = day + step * away;
    if (!isOut(walk, to, at) && shownAt(walk, to * DAY + DAY / 2) !== null) return to;
  }
  return null;
}

export function isPicked(walk: Walk, day: number): boolean {
  const { pick } = walk;
  const period = periodOf(pick?.of ?? 'week', day);
  const begins = judgedAt(walk, day);
  if (isOut(walk, day, begins)) return false;
  let [before, after] = [0, 0];
  for (let other = day - 1; periodOf(pick?.of ?? 'week', other) === period; other -= 1)
    if (isKept(walk, other) && !isOut(walk, other, judgedAt(walk, other))) before += 1;
  for (let other = day + 1; periodOf(pick?.of ?? 'week', other) === period; other += 1)
    if (isKept(walk, other) && !isOut(walk, other, begins)) after += 1;
  return (pick?.nth ?? []).some((nth) => nth === before + 1 || nth === -after - 1);
}

function periodOf(of: 'week' | 'month' | 'quarter' | 'year', day: number): string {
  const date = new Date(day * DAY_MS);
  const year = date.getUTCFullYear();
  if (of === 'week') return String(mondayOf(date));
  if (of === 'year') return String(year);
  return `${year} ${of === 'month' ? date.getUTCMonth() : Math.floor(date.getUTCMonth() / 3)}`;
}

/** As it begins; earlier dates, as the schedule comes to be. */
function judgedAt(walk: Walk, day: number): number {
  return Math.max(beginOf(walk, day), walk.since + 1);
}

export function beginOf(walk: Walk, day: number): number {
  const minute = shownAt(walk, day * DAY)?.minute ?? shownAt(walk, (day + 1) * DAY)?.minute ?? Infinity;
  return minute * 60_000;
}

/** The first `count` after `from` of the fires that a day has by each expression that selects it, made on another day. */
export function firesOn(walk: Walk, day: number, to: number, count: number): number[] {
  return walk.selections
    .filter((one) => one.day(day))
    .flatMap((one) => (one.periodic ? periodicFires : timedFires)(walk, one, to, count));
}

function timedFires(walk: Walk, { hours, minutes, seconds }: Selection, to: number, count: number): number[] {
  const found: number[] = [];
  if ((shownAt(walk, to * DAY + DAY - 1)?.minute ?? Infinity) * 60_000 + 59_000 < walk.from) return found;
  for (let minute = 0; minute < DAY && found.length < count; minute += 1) {
    if (!hours.has(Math.floor(minute / 60)) || !minutes.has(minute % 60)) continue;
    const shown = shownAt(walk, to * DAY + minute);
    if (shown === null) continue;
    for (const second of shown.swallowed ? [0] : seconds) {
      const at = shown.minute * 60_000 + second * 1000;
      if (at > walk.from && at !== found.at(-1)) found.push(at);
    }
  }
  return found;
}

function periodicFires(walk: Walk, { minutes, seconds }: Selection, to: number, count: number): number[] {
  const found: number[] = [];
  for (let minute = to * DAY - 900; minute < to * DAY + DAY + 900 && found.length < count; minute += 1) {
    const local = walk.clock(minute);
    if (Math.floor(local / DAY) !== to || !minutes.has(local % 60)) continue;
    found.push(...seconds.map((second) => minute * 60_000 + second * 1000).filter((at) => at > walk.from));
  }
  return found;
}

interface Shown {
  minute: number;
  /** A gap swallowed it: the clock shows a later time there. */
  swallowed: boolean;
}

const furthest = new WeakMap<LocalClock, Map<number, number>>();

/** The first minute at which a clock that never goes backwards shows a local minute, or has passed it; null: its date was left out. */
function shownAt({ clock }: Walk, local: number): Shown | null {
  let minute = local - offsetNear(clock, Math.floor(local / DAY));
  while (clock(minute) < local) minute += 1;
  if (clock(minute) === local) return { minute, swallowed: false };
  let latest = -Infinity;
  for (let before = minute - 2 * DAY; before < minute; before += 1) latest = Math.max(latest, clock(before));
  return clock(minute) - latest - 1 >= DAY ? null : { minute, swallowed: true };
}

/** The greatest offset around a day. */
function offsetNear(clock: LocalClock, day: number): number {
  const known = furthest.get(clock) ?? new Map<number, number>();
  furthest.set(clock, known);
  let offset = known.get(day);
  if (offset === undefined) {
    const hours = Array.from({ length: 97 }, (_, index) => day * DAY + (index - 36) * 60);
    offset = Math.max(...hours.map((minute) => clock(minute) - minute));
    known.set(day, offset);
  }
  return offset;
}
