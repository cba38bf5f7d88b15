import type { DayNumber } from '../utc-day.ts';
import { type DayRule, LAST_KEPT_DAY } from '../cron/cron-wall.ts';
import { remembering } from '../cron/remembering.ts';
import type { ExclusionViews } from '../exclusions/exclusion.ts';
import type { DayPick } from './day-rules.ts';
import { PERIODS } from './every-days.ts';
import { type DatesJudged, exists, viewOf } from './local-dates.ts';

interface Picking extends DatesJudged {
  pick: DayPick;
  /** The first day at or after one that the expressions and `every` keep; null: there is none. */
  nextCandidate: (day: DayNumber) => DayNumber | null;
}

/**
 * The same rule for the same days, so that a period is numbered once for all schedules that differ in their times. `name` says all but
 * the views.
 */
export function pickRule(picking: Picking, name: string): DayRule {
  const ofViews = rules.get(picking.views) ?? new Map<string, DayRule>();
  const rule = ofViews.get(name) ?? newRule(picking);
  if (ofViews.size >= KNOWN_RULES) ofViews.clear();
  ofViews.set(name, rule);
  rules.set(picking.views, ofViews);
  return rule;
}

const rules = new WeakMap<ExclusionViews, Map<string, DayRule>>();
const KNOWN_RULES = 256;

/**
 * Keeps the n-th days of each period. Each day is judged by what the calendars said as it began, and counts the days after it by that too:
 * an edit in the middle of a period does not number again what has passed.
 */
function newRule(picking: Picking): DayRule {
  const { pick, zone, nextCandidate } = picking;
  const { indexOf, startOf } = PERIODS[pick.of];
  const known = new Map<number, DayNumber[]>();
  const picked = (period: number): DayNumber[] => {
    let days = known.get(period);
    if (!days) {
      if (known.size >= KNOWN) known.clear();
      days = pickedOf(period);
      known.set(period, days);
    }
    return days;
  };
  const pickedOf = (period: number): DayNumber[] => {
    const candidates: DayNumber[] = [];
    const end = startOf(period + 1);
    for (let day = nextCandidate(startOf(period)); day !== null && day < end; day = nextCandidate(day + 1))
      if (exists(zone, day)) candidates.push(day);
    return numberedOf(picking, candidates);
  };
  const firstFrom = (asked: DayNumber): DayNumber | null => {
    for (let day: DayNumber | null = asked; ;) {
      day = nextCandidate(day);
      if (day === null || day > LAST_KEPT_DAY) return null;
      const period = indexOf(day);
      const found = picked(period).find((one) => one >= asked);
      if (found !== undefined) return found;
      day = startOf(period + 1);
    }
  };
  // Each expression asks.
  return { firstFrom: remembering(firstFrom) };
}

/** Questions usually come in order. */
const KNOWN = 16;

function numberedOf(picking: Picking, days: readonly DayNumber[]): DayNumber[] {
  const { views } = picking;
  const { nth } = picking.pick;
  const found: DayNumber[] = [];
  let before = 0;
  let after = 0;
  let countedBy = -1;
  days.forEach((day, index) => {
    const view = viewOf(picking, day);
    // How many are left from this day on.
    if (view !== countedBy) after = countLeft(views, view, days.slice(index));
    countedBy = view;
    if (views.has(view, day)) return;
    if (nth.includes(before + 1) || nth.includes(-after)) found.push(day);
    before += 1;
    after -= 1;
  });
  return found;
}

function countLeft(views: ExclusionViews, view: number, days: readonly DayNumber[]): number {
  return days.filter((day) => !views.has(view, day)).length;
}
