import { type Walk, beginOf, dateOf, dayOf, firesOn, shownAt, walkOf } from './walked-dates.ts';

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
      if (walk.pick !== null && !isPicked(walk, day) && at > (lateUntil(walk, day) ?? -Infinity)) continue;
      found.set(at, (found.get(at) ?? new Set()).add(to === day ? '' : dateOf(day)));
    }
  }
  return [...found]
    .sort(([a], [b]) => a - b)
    .slice(0, count)
    .map(([at, sources]) => ({ at, from: sources.has('') ? null : ([...sources].sort()[0] ?? null) }));
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
    const months = (date.getUTCFullYear() - first.getUTCFullYear()) * 12 + date.getUTCMonth() - first.getUTCMonth();
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
  if (walk.pick !== null) return isPicked(walk, day) || lateUntil(walk, day) !== null ? day : null;
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
  return pickedBy(walk, day, judgedAt(walk, day)).includes(day);
}

/** The n-th dates of the period of a date, that one included, as they are known then: later ones by what calendars say at a moment. */
export function pickedBy(walk: Walk, today: number, at: number): number[] {
  const { of = 'week', nth = [] } = walk.pick ?? {};
  const left = datesOfPeriod(of, today).filter(
    (day) => isKept(walk, day) && !isOut(walk, day, day <= today ? judgedAt(walk, day) : at),
  );
  return left.filter((_, index) => nth.includes(index + 1) || nth.includes(index - left.length));
}

export function datesOfPeriod(of: NonNullable<DayCase['pick']>['of'], day: number): number[] {
  let first = day;
  while (periodOf(of, first - 1) === periodOf(of, day)) first -= 1;
  const found = [];
  for (let one = first; periodOf(of, one) === periodOf(of, day); one += 1) found.push(one);
  return found;
}

const late = new WeakMap<Walk, Map<number, number>>();

/**
 * Until when the fires of a date are made that an edit of a calendar picked once it had begun: of a period that had no fire since the schedule
 * has these fire times, and would have none. Null: none did.
 */
function lateUntil(walk: Walk, day: number): number | null {
  const known = late.get(walk) ?? lateDates(walk);
  late.set(walk, known);
  return known.get(day) ?? null;
}

function lateDates(walk: Walk): Map<number, number> {
  const found = new Map<number, number>();
  const all = [...new Set(walk.versions.flat().map(({ at }) => at))].sort((a, b) => a - b);
  const edits = all.filter((at) => at > walk.since);
  for (const [index, at] of edits.entries()) {
    const today = dateBegunBy(walk, at);
    const dates = datesOfPeriod(walk.pick?.of ?? 'week', today);
    const own = dates.filter((day) => day <= today && isPicked(walk, day));
    const had = own.some((day) => firesOn({ ...walk, from: walk.since }, day, day, 1).length > 0);
    const now = pickedBy(walk, today, at + 1);
    if (had || now.some((day) => day > today)) continue;
    const before = dates.filter((day) => found.has(day));
    for (const day of now) {
      if (own.includes(day) || (before.length > 0 && !before.includes(day))) continue;
      const until = day < today ? Infinity : (edits[index + 1] ?? Infinity);
      const fires = firesOn({ ...walk, from: -Infinity }, day, day, 1);
      if (fires.some((fire) => fire <= until)) found.set(day, until);
    }
  }
  return found;
}

export function dateBegunBy(walk: Walk, at: number): number {
  let day = dayOf(walk, at) + 1;
  while (beginOf(walk, day) > at) day -= 1;
  return day;
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
