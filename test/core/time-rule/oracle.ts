import { type Selection, select } from './expression.ts';
import { type LocalClock, localClock } from './local-clock.ts';

interface Expectation {
  /** Strictly after `from`, in order. */
  fires: number[];
  /** What a change of the clocks did to each. */
  notes: Note[];
  /** Where the walk ended: what fires before it is in `fires`, unless these are all that were asked for. */
  horizon: number;
}

type Note = 'moved by DST' | 'repeated hour' | null;

const DAY = 1440;
const WARM_UP = 2 * DAY;

/**
 * When an expression fires, or any of several, by walking the minutes: no transitions, no arithmetic with offsets, only what the wall
 * clock shows. Days whose date, and whose neighbours' dates, are not selected are stepped over. What is `excluded`, given the date that
 * the wall clock shows, is no fire.
 */
export function expectedFires(
  cron: string | readonly string[],
  zone: string,
  from: number,
  count: number,
  limits: { days: number; walkedDays: number },
  excluded: (fire: number, date: string) => boolean = () => false,
): Expectation {
  const selections = [cron].flat().map(select);
  const clock = localClock(zone);
  const walk = together(selections.map((one) => (one.periodic ? periodic(one, clock) : timeOfDay(one, clock))));
  const fires: number[] = [];
  const notes: Note[] = [];
  const today = Math.floor(from / 60_000 / DAY);
  let walked = 0;
  let day = today;
  for (; day < today + limits.days && walked < limits.walkedDays && fires.length < count; day += 1) {
    if (!selections.some((one) => mayMatch(one, day))) continue;
    walked += 1;
    walk(day * DAY, (fire, isMoved) => {
      const date = new Date(clock(Math.floor(fire / 60_000)) * 60_000).toISOString().slice(0, 10);
      if (fire > from && fires.length < count && !excluded(fire, date)) {
        fires.push(fire);
        notes.push(isMoved ? 'moved by DST' : isShownTwice(clock, fire) ? 'repeated hour' : null);
      }
      return fires.length === count;
    });
  }
  return { fires, notes, horizon: day * DAY * 60_000 };
}

/** Told of a fire, and whether a gap put it there; answers whether that was enough. */
type OnFire = (fire: number, isMoved: boolean) => boolean;
/** Tells every fire of one UTC day. */
type Walk = (start: number, onFire: OnFire) => void;

/** All of a day, one after the other; then in order, what coincides once. */
function together(walks: readonly Walk[]): Walk {
  const [only] = walks;
  if (only && walks.length === 1) return only;
  return (start, onFire) => {
    const found = new Map<number, boolean>();
    for (const walk of walks) {
      walk(start, (fire, isMoved) => {
        found.set(fire, (found.get(fire) ?? false) || isMoved);
        return false;
      });
    }
    [...found].sort(([one], [other]) => one - other).some(([fire, isMoved]) => onFire(fire, isMoved));
  };
}

/** Local dates are at most a day from the UTC date; a gap may end in the day after its own. */
function mayMatch(selection: Selection, day: number): boolean {
  return [-2, -1, 0, 1, 2].some((away) => selection.day(day + away));
}

/** Every real instant whose local time matches. */
function periodic(selection: Selection, clock: LocalClock): Walk {
  const matches = matcher(selection);
  return (start, onFire) => {
    for (let minute = start; minute < start + DAY; minute += 1) {
      if (matches(clock(minute)) && emitSeconds(selection, minute, onFire)) return;
    }
  };
}

/** A local clock that never goes backwards, and that makes up for what it jumped over. */
function timeOfDay(selection: Selection, clock: LocalClock): Walk {
  const matches = matcher(selection);
  let next = Number.NaN;
  let latest = Number.NEGATIVE_INFINITY;
  return (start, onFire) => {
    if (start !== next) {
      latest = Number.NEGATIVE_INFINITY;
      for (let minute = start - WARM_UP; minute < start; minute += 1) latest = Math.max(latest, clock(minute));
    }
    next = start + DAY;
    for (let minute = start; minute < next; minute += 1) {
      const local = clock(minute);
      if (local <= latest) continue;
      const swallowed = local - latest - 1 < DAY && anyOf(matches, latest + 1, local);
      latest = local;
      if (swallowed && onFire(minute * 60_000, true)) return;
      if (matches(local) && emitSeconds(selection, minute, onFire, swallowed)) return;
    }
  };
}

/** The wall clock shows the same at some other minute of the two days before or after. */
function isShownTwice(clock: LocalClock, fire: number): boolean {
  const minute = Math.floor(fire / 60_000);
  const hours = Array.from({ length: 97 }, (_, index) => minute + (index - 48) * 60);
  const offset = clock(minute) - minute;
  if (hours.every((other) => clock(other) - other === offset)) return false;
  for (let other = minute - WARM_UP; other <= minute + WARM_UP; other += 1) {
    if (other !== minute && clock(other) === clock(minute)) return true;
  }
  return false;
}

function anyOf(matches: (local: number) => boolean, first: number, end: number): boolean {
  for (let local = first; local < end; local += 1) if (matches(local)) return true;
  return false;
}

function emitSeconds({ seconds }: Selection, minute: number, onFire: OnFire, startIsEmitted = false): boolean {
  return seconds.some((second) => !(startIsEmitted && second === 0) && onFire(minute * 60_000 + second * 1000, false));
}

function matcher(selection: Selection): (local: number) => boolean {
  let day = Number.NaN;
  let dayMatches = false;
  return (local) => {
    if (!selection.minutes.has(local % 60)) return false;
    if (!selection.hours.has(Math.floor((local % DAY) / 60))) return false;
    const asked = Math.floor(local / DAY);
    if (asked !== day) {
      day = asked;
      dayMatches = selection.day(asked);
    }
    return dayMatches;
  };
}
