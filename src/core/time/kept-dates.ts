import { isDeepStrictEqual } from 'node:util';
import type { DayNumber, Instant } from '../instant.ts';
import type { Calendars } from '../exclusions/exclusion.ts';
import type { PlannedUpTo } from './cursors.ts';
import { dateOfDay } from '../exclusions/day-set.ts';
import type { DayPick, Identity, KeptDate, KeptDates, Timing } from '../timing/timing.ts';
import { type FireTimes, fireTimes, lastBetween } from './fire-times.ts';
import { type DecidedDate, type Decider, deciderOf, isInWindow, owedOnce } from '../days/decided-dates.ts';
import { PERIODS } from '../days/pick-days.ts';
import { hadFire, inSeries } from '../days/kept-fires.ts';
import { dateBeginsAt, dateAt } from '../days/local-dates.ts';
import { MAX_MOVE_DAYS } from '../days/moved-days.ts';

/** What an edit of the fire times has to respect of what was decided before it. */
interface DatesAtEdit {
  /** What the new definition keeps; absent: nothing. */
  kept: KeptDates | undefined;
  /** Fires that the edit moves to moments that have passed: they are to be made at once, or as `catchUp` says. */
  owed: Instant[];
}

interface Edit {
  before: Timing;
  after: Timing;
  identity: Identity;
  /** When the schedule was edited before; absent: never. */
  editedAt?: Instant;
  /** How far it is planned; absent: up to this moment. */
  planned?: Pick<PlannedUpTo, 'nextOccurrenceAt' | 'plannedThrough'>;
  /** The moment of the edit. */
  now: Instant;
  calendars: Calendars;
}

/**
 * A date that has begun, or of which a fire was moved ahead and has come, keeps what the old definition decided: whether it fires, and
 * on which day. What lies ahead of it is made at the times of day of the new one; where all was made, nothing is. The new definition
 * decides all other dates.
 */
export function datesAtEdit(edit: Edit): DatesAtEdit {
  const { before, after, identity, editedAt, calendars, now } = edit;
  if (![before, after].some(decidesByDates)) return { kept: undefined, owed: [] };
  if (DECIDING.every((field) => isDeepStrictEqual(before[field], after[field]))) return { kept: before.kept, owed: [] };
  const { kept: _, ...fresh } = after;
  const oldTimes = fireTimes(before, identity, calendars);
  const newest = newestOf(edit, oldTimes);
  const editing: Editing = {
    old: deciderOf(before, identity, calendars),
    young: deciderOf(fresh, { ...identity, createdAt: now }, calendars),
    ...{ pick: fresh.pick, isByDates: hasDates(fresh), now },
    isMade: (at) => newest !== null && at <= newest,
    ahead: once((fires) => fires.filter((at) => at > now)),
  };
  const dates = new Map<DayNumber, KeptDate>();
  const passed = new Set<readonly Instant[]>();
  const today = dateAt(editing.young.zone, now);
  const moves = [before, after].some(hasDates);
  for (let day = today - REACH; day <= today + REACH; day += 1)
    if (moves || editing.old.decide(day)?.isKept) decideDate(editing, day, { dates, passed });
  if (fresh.pick) pickLate(editing, fresh.pick, { dates, passed, newest });
  // What the old definition would have made before it was in force has no run.
  const since = before.kept?.since ?? editedAt ?? identity.createdAt;
  const wasMade = (at: Instant) => at > since && oldTimes.next(at - 1) === at;
  const owed = owedOnce(passed, (at) => at <= now && isInWindow(after, at) && !wasMade(at));
  if (dates.size === 0 && !decidesByDates(fresh)) return { kept: undefined, owed };
  const last = Math.max(newest ?? -Infinity, ...owed.slice(-1));
  const said = fresh.pick && last > -Infinity ? { newest: last } : {};
  return { kept: { since: now, dates: [...dates.values()], ...said }, owed };
}

/** The newest fire that is planned, or due, before the edit; null: none. */
function newestOf({ planned, before, identity, now }: Edit, times: FireTimes): Instant | null {
  const { nextOccurrenceAt: next, plannedThrough } = planned ?? {
    nextOccurrenceAt: (before.kept?.since ?? identity.createdAt) + 1,
    plannedThrough: before.kept?.newest ?? null,
  };
  return (next === null ? null : lastBetween(times, next - 1, now)) ?? plannedThrough;
}

/** Days that are moved to one often have the same list of fires. */
function once<Value>(work: (fires: readonly Instant[]) => Value): (fires: readonly Instant[]) => Value {
  const known = new Map<readonly Instant[], Value>();
  return (fires) => {
    const value = known.get(fires) ?? work(fires);
    known.set(fires, value);
    return value;
  };
}

/** Where these stay, so do all decisions. */
const DECIDING = ['cron', 'timezone', 'exclude', 'onExcluded', 'every', 'pick'] as const;

/** A day more than fires are moved, since zones can differ. */
const REACH = MAX_MOVE_DAYS + 2;

/** Others judge each fire at its own moment. */
const hasDates = ({ onExcluded, pick }: Timing): boolean => onExcluded !== 'skip' || pick !== null;

const decidesByDates = (timing: Timing): boolean => hasDates(timing) || timing.kept !== undefined;

interface Editing {
  old: Decider;
  young: Decider;
  /** Of the new definition. */
  pick: DayPick | null;
  isByDates: boolean;
  now: Instant;
  /** Whether a fire of the old definition was made, or planned. */
  isMade: (at: Instant) => boolean;
  /** The fires that are still to come. */
  ahead: (fires: readonly Instant[]) => readonly Instant[];
}

interface Found {
  dates: Map<DayNumber, KeptDate>;
  /** Fires that the new definition moves ahead, of dates that it decides, where the first has passed. */
  passed: Set<readonly Instant[]>;
}

function decideDate(editing: Editing, day: DayNumber, { dates, passed }: Found): void {
  const { old, young, now, ahead, isByDates } = editing;
  const begins = dateBeginsAt(old.zone, day);
  const [before, after] = [old.decide(day), young.decide(day)];
  const isAhead = (one: DecidedDate | null) =>
    one !== null && one.to !== null && (one.to < day || one.isKept) && (one.fires()[0] ?? now) <= now;
  if (begins > now && !(before?.isKept ?? false) && !isAhead(before)) {
    if (after && isAhead(after)) passed.add(after.fires());
    return;
  }
  const left = before ? leftOf(editing, day, before) : [];
  const isOver = dateBeginsAt(young.zone, day + 1) <= now;
  const own = after && !(after.to === day && isOver) ? ahead(after.fires()) : [];
  const isSame = left.length === own.length && left.every((at, index) => at === own[index]);
  // The next edit would not know.
  const isForgotten = isByDates && left.length === 0 && after !== null && !isOver;
  const reason = before?.because ?? after?.because ?? '';
  if (!isSame || isForgotten || (before && begins > now))
    dates.set(day, { date: dateOfDay(day), reason, fires: inSeries(left) });
}

/** What is to come of a date that was decided. */
function leftOf({ young, pick, now, isMade, ahead }: Editing, day: DayNumber, date: DecidedDate) {
  const { to, isLate, isKept } = date;
  if (to === null || dateBeginsAt(young.zone, to + 1) <= now) return [];
  const fires = date.fires();
  const hasBegun = fires.some((at) => at <= now && (isKept || isMade(at)));
  // `pickLate` decides anew.
  if (isLate && pick !== null) return [];
  if (fires.length === 0 || (hasBegun && ahead(fires).length === 0)) return [];
  const anew = young.firesOn(day, to);
  return anew === null ? (to === day ? [] : ahead(fires)) : ahead(anew);
}

/**
 * No period is lost to the edit: where the present one has had no fire and has none to come, the days up to today that the new definition
 * picks, and the old one did not, are made.
 */
function pickLate(
  { old, young, now, ahead }: Editing,
  pick: DayPick,
  { dates, passed, newest }: Found & { newest: Instant | null },
): void {
  const today = dateAt(young.zone, now);
  const period = PERIODS[pick.of].indexOf(today);
  const before = { dates: [...dates.values()], ...(newest === null ? {} : { newest }) };
  const goesOn = old.decide(today)?.isLate ?? false;
  const isServed = hadFire(before, young.zone, pick, period);
  const days = young.picked?.daysOf(period) ?? [];
  const firesOf = (day: DayNumber) => young.decide(day)?.fires() ?? [];
  const isToCome = (day: DayNumber) => day > today || (day === today && ahead(firesOf(day)).length > 0);
  if (days.some((day) => isToCome(day) && !dates.has(day))) return;
  for (const day of days) {
    const decided = old.decide(day);
    if (isServed && !(goesOn && day === today)) continue;
    if (decided !== null && !decided.isLate && decided.fires().length > 0) continue;
    passed.add(firesOf(day));
    if (day === today) dates.set(day, { date: dateOfDay(day), reason: '', isLate: true, fires: [] });
  }
}
