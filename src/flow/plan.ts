/**
 * Guarantees: every occurrence up to now is in the plan, each row by itself: one that cannot be planned is set aside and stops no other.
 * Transaction: none; nothing is written here. What calendars say is read first, where a schedule names some.
 * If the process dies here: nothing has happened; the cursor in the row still points at the first of these fires.
 */
import { setImmediate } from 'node:timers/promises';
import type { Instant } from '../core/instant.ts';
import { type Plan, type PlanningPeriod, type Walk, horizonOf, walkDue } from '../core/time/plan-due.ts';
import { fireTimes } from '../core/time/fire-times.ts';
import type { Clock } from '../runtime/clock.ts';
import type { LockedSchedule } from '../store/schedules/locked-schedule.ts';
import { type CalendarReader, type ScheduleCalendars, beginningOf } from './plan-calendars.ts';
import { timingOf } from './stored-timing.ts';

export interface PlannedSchedule {
  schedule: LockedSchedule;
  plan: Plan;
  /** The versions of its calendars that it was planned by; null: it names none. */
  calendars: ReadonlyMap<string, number> | null;
}

export interface UnplannableSchedule {
  schedule: LockedSchedule;
  error: unknown;
}

export interface Planned {
  planned: PlannedSchedule[];
  unplannable: UnplannableSchedule[];
}

/**
 * Plans locked schedules. A long walk (a week of missed seconds) goes on over several rounds, a slice each, while other
 * schedules are planned and committed in between; it stays under its fire-lock and is decided as of its start. What is due
 * beyond what one commit may write is left to the next round, as of the same moment.
 */
export interface Planner {
  round(locked: readonly LockedSchedule[], now: Instant): Promise<Planned>;
  /** Schedules whose walk is not finished. */
  walking(): string[];
  /** Forgets the unfinished walks: the instance that gets the fire-lock next begins anew. */
  giveUp(): void;
}

interface Walking {
  schedule: LockedSchedule;
  walk: Walk;
  calendars: PlannedSchedule['calendars'];
  /** Part of it is committed, and that commit released the fire-lock: it goes on only if this instance gets the next lock too. */
  isUnlocked: boolean;
}

/** How far a schedule is planned at once, before it becomes a walk that takes turns with others. */
const FIRST_STEPS = 16;
/** How long walks may take in each round. */
const ROUND_MS = 50;
/** How long planning may block the process. */
const SLICE_MS = 10;

// eslint-disable-next-line max-lines-per-function -- a closure: its functions share its state, and are short
export function createPlanner(clock: Clock, retentionDays: number, readCalendars: CalendarReader): Planner {
  const walks = new Map<string, Walking>();

  async function round(locked: readonly LockedSchedule[], now: Instant): Promise<Planned> {
    const done: Planned = { planned: [], unplannable: [] };
    const fresh = locked.filter((schedule) => !renewed(schedule));
    for (const { uid } of fresh) walks.delete(uid);
    // This instance did not get the lock again. If the schedule comes back, its planning starts again from that moment.
    for (const [uid, { isUnlocked }] of walks) if (isUnlocked) walks.delete(uid);
    const period = { now, horizon: horizonOf(now, retentionDays) };
    const calendars = await readCalendars(fresh);
    let sliceEnd = clock.monotonic() + SLICE_MS;
    const breathe = async (): Promise<void> => {
      if (clock.monotonic() < sliceEnd) return;
      await setImmediate();
      sliceEnd = clock.monotonic() + SLICE_MS;
    };
    for (const schedule of fresh) {
      await breathe();
      const own = calendars.get(schedule.uid);
      stepInto(
        done,
        { schedule, calendars: own?.versions ?? null },
        () => walkOf(schedule, period, own),
        atMost(FIRST_STEPS),
      );
    }
    // A finished plan waits for the end of this round, so a round is short: the walks take turns.
    const roundEnd = clock.monotonic() + ROUND_MS;
    for (const { walk, ...walking } of [...walks.values()]) {
      if (clock.monotonic() >= roundEnd) break;
      await breathe();
      stepInto(
        done,
        walking,
        () => walk,
        atLeastOnce(() => clock.monotonic() < sliceEnd),
      );
    }
    return done;
  }

  /** The newest lock of a walk that goes on: it guards the commit. */
  function renewed(schedule: LockedSchedule): boolean {
    const going = walks.get(schedule.uid);
    if (going?.schedule.version !== schedule.version) return false;
    if (going.schedule.nextOccurrenceAt !== schedule.nextOccurrenceAt) return false;
    walks.set(schedule.uid, { ...going, schedule, isUnlocked: false });
    return true;
  }

  function stepInto(
    done: Planned,
    { schedule, calendars }: Pick<Walking, 'schedule' | 'calendars'>,
    begin: () => Walk,
    mayGoOn: () => boolean,
  ): void {
    try {
      const walk = begin();
      const plan = walk.step(mayGoOn);
      walks.delete(schedule.uid);
      if (plan) done.planned.push({ schedule, plan, calendars });
      if (!plan) walks.set(schedule.uid, { schedule, walk, calendars, isUnlocked: false });
      if (plan?.isPartial && plan.nextOccurrenceAt !== null) {
        const { nextOccurrenceAt } = plan;
        const from = { ...schedule, nextOccurrenceAt };
        walks.set(schedule.uid, { schedule: from, walk, calendars, isUnlocked: true });
      }
    } catch (error) {
      walks.delete(schedule.uid);
      done.unplannable.push({ schedule, error });
    }
  }

  return { round, walking: () => [...walks.keys()], giveUp: () => walks.clear() };
}

function walkOf(
  schedule: LockedSchedule,
  period: Pick<PlanningPeriod, 'now' | 'horizon'>,
  calendars: ScheduleCalendars | undefined,
): Walk {
  if (!Number.isFinite(schedule.nextOccurrenceAt))
    throw new Error('its next occurrence is no moment to plan from');
  const timing = timingOf(schedule.timing);
  for (const [id, version] of calendars?.versions ?? [])
    if (version === 0) throw new Error(`it names a calendar that does not exist: ${id}`);
  const { plannedThrough, skips } = schedule;
  const times = fireTimes(timing, schedule, calendars?.histories);
  const from = beginningOf(times, schedule, calendars);
  return walkDue(times, timing, from, { ...period, plannedThrough, skips });
}

function atMost(steps: number): () => boolean {
  let left = steps;
  return () => (left -= 1) >= 0;
}

/** Each schedule makes some progress, however little of the slice is left. */
function atLeastOnce(mayGoOn: () => boolean): () => boolean {
  let steps = 0;
  return () => {
    steps += 1;
    return steps <= 2 || mayGoOn();
  };
}
