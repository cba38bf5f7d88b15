import { remembering } from '../cron/remembering.ts';
import { dateOfDay } from '../exclusions/date-entries.ts';
import type { Instant, DayNumber } from '../instant.ts';
import type { Timing } from '../timing/timing.ts';
import { fireTimes } from './fire-times.ts';
import { zoneOffsets } from '../zones/zone-offsets.ts';
import { hasDayRule } from '../days/day-times.ts';
import { PERIODS } from '../days/every-days.ts';
import { dateAt, spansOf } from '../days/local-dates.ts';
import { NOWHERE, type OwnFate, type Ruled, firesDuring, ownFates } from './own-fates.ts';

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
