import { remembering } from '../cron/remembering.ts';
import { dateOfDay } from '../exclusions/day-set.ts';
import type { DayNumber, Instant } from '../instant.ts';
import type { Identity, Timing } from '../timing/timing.ts';
import { fireTimes } from './fire-times.ts';
import { zoneOffsets } from '../zones/zone-offsets.ts';
import { dayTimes, firstCalendarVersionOf, hasDayRule, inWords } from '../days/day-times.ts';
import { everyRule, PERIODS } from '../days/pick-days.ts';
import { type DateSpan, calendarVersionOf, dateAt, spansOf } from '../days/local-dates.ts';
import { type Calendars, exclusionOf } from '../exclusions/exclusion.ts';
import { readCron } from '../cron/cron.ts';
import type { LocalTimes } from '../cron/cron-wall.ts';
import type { Cron } from '../cron/cron-fields.ts';
import { nextKeptDay } from '../days/moved-days.ts';

/** Why a date fires or not. Of a date without fires: the step that left it without. */
export const DAY_VERDICTS = [
  'fires',
  'notSelected',
  'notItsTurn',
  'excluded',
  'moved',
  'notPicked',
  'outside',
  'clocks',
  'noSuchDate',
] as const;

export interface ExplainedDay extends Omit<OwnFate, 'verdict'> {
  date: string;
  verdict: (typeof DAY_VERDICTS)[number];
  /** The first ones, in order. */
  fires: Instant[];
  /** It has more than these. */
  isCut: boolean;
}

/** Whether more than its expression or its interval decides on which days a schedule fires. */
export function hasDays(timing: Timing): boolean {
  return timing.exclude !== null || hasDayRule(timing);
}

/** All days of the local month in which a moment lies. */
export function daysOfMonth(timezone: string | null, at: Instant): DayNumber[] {
  const { indexOf, startOf } = PERIODS.month;
  const month = indexOf(dateAt(zoneOffsets(timezone), at));
  const first = startOf(month);
  return Array.from({ length: startOf(month + 1) - first }, (_, index) => first + index);
}

/**
 * Explains dates by the steps of the rule itself, so that the two cannot disagree. Quick if it is asked about dates in order; of each it
 * lists `maxFires` fires. Throws CronError; Error where the history of a calendar is missing.
 */
export function dayExplainer(ruled: Ruled, maxFires: number): (day: DayNumber) => ExplainedDay {
  const { timing, identity, calendars } = ruled;
  const zone = zoneOffsets(timing.timezone);
  const unbounded = withoutBounds(timing);
  const firesOf = (of: Timing) => {
    const times = fireTimes(of, identity, calendars);
    return remembering((from) => times.next(from - 1));
  };
  const [fires, firesEver] = [firesOf(timing), firesOf(unbounded)];
  const fateOf = ownFates({ ...ruled, timing: unbounded });
  return (day) => {
    const spans = spansOf(zone, day);
    const found = firesDuring(spans, fires, maxFires + 1);
    const shown = {
      date: dateOfDay(day),
      fires: found.slice(0, maxFires),
      isCut: found.length > maxFires,
    };
    if (spans.length === 0) return { ...shown, ...NOWHERE, verdict: 'noSuchDate' };
    const own = fateOf(day, spans);
    if (found.length > 0) return { ...shown, ...own, verdict: 'fires' };
    if (unbounded !== timing && firesDuring(spans, firesEver, 1).length > 0)
      return { ...shown, ...NOWHERE, verdict: 'outside' };
    return { ...shown, ...own, verdict: own.verdict === 'fires' ? 'clocks' : own.verdict };
  };
}

/** As if it had fired since ever, and would for ever. An interval is counted from `startAt`. */
function withoutBounds(timing: Timing): Timing {
  const { startAt, endAt, everySeconds } = timing;
  if (startAt === null && endAt === null) return timing;
  return { ...timing, startAt: everySeconds === null ? null : startAt, endAt: null };
}

/** What becomes of the fires that a date has by itself, whatever other dates bring. */
interface OwnFate {
  verdict: 'fires' | 'notSelected' | 'notItsTurn' | 'excluded' | 'moved' | 'notPicked';
  /** What excludes it: `calendar us-holidays`. Null: nothing. */
  reason: string | null;
  /** Where its fires are made, if that is another date. */
  movedTo: string | null;
  /** The other dates whose fires are made on it. */
  movedFrom: string[];
}

const NOWHERE = { reason: null, movedTo: null, movedFrom: [] };

export interface Ruled {
  timing: Timing;
  identity: Identity;
  calendars: Calendars;
}

type Fates = (day: DayNumber, spans: readonly DateSpan[]) => OwnFate;

/** Asks the steps of the rule in their order (docs/days.md). */
function ownFates(ruled: Ruled): Fates {
  const { cron } = ruled.timing;
  const fates = cron === null ? fatesByMoment(ruled) : fatesByStep(ruled, cron);
  return withKept(ruled.timing, fates);
}

/** Of an interval, or of one moment: it has no days but excluded ones. */
function fatesByMoment(ruled: Ruled): Fates {
  const reasonAt = reasonsAtMoments(ruled);
  return (day, spans) => {
    const reason = reasonAt(day, spans);
    if (reason === undefined) return { ...NOWHERE, verdict: 'notSelected' };
    return { ...NOWHERE, reason, verdict: reason === null ? 'fires' : 'excluded' };
  };
}

/** What excludes a date, judged as it is without `pick` and `onExcluded`: at the moment of its fire. Undefined: it has none. */
function reasonsAtMoments({ timing, identity, calendars }: Ruled) {
  const exclusion = exclusionOf(timing, calendars);
  const times = fireTimes(timing, identity, calendars);
  const firstFrom = remembering((from) => times.nextOnAnyDay(from - 1));
  return (day: DayNumber, spans: readonly DateSpan[]): string | null | undefined => {
    const [first] = firesDuring(spans, firstFrom, 1);
    if (first === undefined || exclusion === null) return first === undefined ? undefined : null;
    const reason = exclusion.versions.reasonOf(exclusion.versions.indexAt(first), day);
    return reason && inWords(reason);
  };
}

function fatesByStep(ruled: Ruled, cron: Cron): Fates {
  const { timing, identity, calendars } = ruled;
  const { every, pick, timezone } = timing;
  const { id, createdAt } = identity;
  const exclusion = exclusionOf(timing, calendars);
  const { moved, localTimes, late } = dayTimes(timing, { id, createdAt, cron, exclusion });
  const isSelected = isDayOf(readCron(cron, id).localTimes(null));
  const turns = every === null ? null : everyRule(every);
  const isOwn = isDayOf(localTimes);
  const isLeft = (day: DayNumber) => isOwn(day) || late.some((one) => one.day === day);
  const reasonAt = reasonsAtMoments(ruled);
  const reasonIn = (version: number, day: DayNumber): string | null => {
    const reason = exclusion?.versions.reasonOf(version, day) ?? null;
    return reason && inWords(reason);
  };
  const reasonOf = (day: DayNumber, spans: readonly DateSpan[]): string | null => {
    if (moved) return moved.decisionOf(day).movedTo === day ? null : reasonIn(moved.decisionOf(day).version, day);
    if (pick === null) return reasonAt(day, spans) ?? null;
    if (exclusion === null) return null;
    const { versions } = exclusion;
    const firstVersion = firstCalendarVersionOf(timing, createdAt, versions);
    return reasonIn(calendarVersionOf({ zone: zoneOffsets(timezone), versions, firstVersion }, day), day);
  };
  return (day, spans) => {
    const movedFrom = (moved?.daysMovedTo(day) ?? []).filter((source) => source !== day).map(dateOfDay);
    const fate = { ...NOWHERE, movedFrom };
    if (!isSelected(day)) return { ...fate, verdict: 'notSelected' };
    if (turns && turns.firstFrom(day) !== day) return { ...fate, verdict: 'notItsTurn' };
    const reason = reasonOf(day, spans);
    const to = moved?.decisionOf(day).movedTo ?? day;
    if (to !== day) return { ...fate, reason, movedTo: dateOfDay(to), verdict: 'moved' };
    if (reason !== null) return { ...fate, reason, verdict: 'excluded' };
    return { ...fate, verdict: pick !== null && !isLeft(day) ? 'notPicked' : 'fires' };
  };
}

/** What an edit keeps of a date that was decided before it goes before all rules. */
function withKept({ kept, timezone }: Timing, fates: Fates): Fates {
  if (kept === undefined) return fates;
  const zone = zoneOffsets(timezone);
  const decided = kept.dates.flatMap(({ date, reason, isLate, fires: [first] }) => {
    const to = first === undefined ? null : dateOfDay(dateAt(zone, first[0]));
    return isLate ? [] : [{ date, reason: reason === '' ? null : reason, to }];
  });
  return (day, spans) => {
    const date = dateOfDay(day);
    const own = fates(day, spans);
    const others = decided.flatMap((one) => (one.to === date && one.date !== date ? [one.date] : []));
    const fate = { ...own, movedFrom: [...new Set([...own.movedFrom, ...others])].sort() };
    const known = decided.find((one) => one.date === date);
    if (!known) return fate;
    const { reason, to } = known;
    if (to === date) return { ...fate, reason: null, movedTo: null, verdict: 'fires' };
    if (to === null && reason === null) return { ...fate, reason, movedTo: to, verdict: 'notPicked' };
    return { ...fate, reason, movedTo: to, verdict: to === null ? 'excluded' : 'moved' };
  };
}

function isDayOf(localTimes: readonly LocalTimes[]): (day: DayNumber) => boolean {
  const firstFrom = remembering((from) => nextKeptDay(localTimes, from));
  return (day) => firstFrom(day) === day;
}

function firesDuring(
  spans: readonly DateSpan[],
  firstFrom: (from: Instant) => Instant | null,
  most: number,
): Instant[] {
  const found: Instant[] = [];
  for (const { from, until } of spans) {
    let at = firstFrom(from);
    for (; at !== null && at < until && found.length < most; at = firstFrom(at + 1)) found.push(at);
  }
  return found;
}
