import { setImmediate } from 'node:timers/promises';
import type { Instant } from '../core/instant.ts';
import { type Plan, type PlanningPeriod, type Walk, horizonOf, walkDue } from '../core/time/plan-due.ts';
import { fireTimes } from '../core/time/fire-times.ts';
import type { Clock } from '../runtime/clock.ts';
import type { LockedSchedule } from '../store/schedules/locked-schedule.ts';
import { type CalendarReader, type ScheduleCalendars, beginningOf, timingOf } from './plan-inputs.ts';

export interface PlannedSchedule {
  schedule: LockedSchedule;
  plan: Plan;
  /** The editions of its calendars that it was planned by; null: it names none. */
  calendars: ScheduleCalendars['editions'] | null;
}

export interface UnplannableSchedule {
  schedule: LockedSchedule;
  error: unknown;
}

export interface Planned {
  planned: PlannedSchedule[];
  unplannable: UnplannableSchedule[];
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

interface PlannerDeps {
  clock: Clock;
  retentionDays: number;
  readCalendars: CalendarReader;
}

/**
 * Plans locked schedules, each by itself: one that cannot be planned stops no other. A long walk (a week of missed seconds) goes on over
 * several rounds, a slice each, while other schedules are planned and committed in between; it stays under its fire-lock and is decided as
 * of its start. What is due beyond what one commit may write is left to the next round, as of the same moment.
 */
export class Planner {
  readonly #deps: PlannerDeps;
  readonly #walks = new Map<string, Walking>();
  /** Monotonic: when the present slice ends. */
  #sliceEnd = 0;

  constructor(deps: PlannerDeps) {
    this.#deps = deps;
  }

  /** Schedules whose walk is not finished. */
  walking(): string[] {
    return [...this.#walks.keys()];
  }

  /** Forgets the unfinished walks: the instance that gets the fire-lock next begins anew. */
  giveUp(): void {
    this.#walks.clear();
  }

  async round(locked: readonly LockedSchedule[], now: Instant): Promise<Planned> {
    const { clock, retentionDays, readCalendars } = this.#deps;
    const done: Planned = { planned: [], unplannable: [] };
    const fresh = locked.filter((schedule) => !this.#renewed(schedule));
    for (const { uid } of fresh) this.#walks.delete(uid);
    // This instance did not get the lock again. If the schedule comes back, its planning starts again from that moment.
    for (const [uid, { isUnlocked }] of this.#walks) if (isUnlocked) this.#walks.delete(uid);
    const period = { now, horizon: horizonOf(now, retentionDays) };
    const calendars = await readCalendars(fresh);
    this.#sliceEnd = clock.monotonic() + SLICE_MS;
    for (const schedule of fresh) {
      if (this.#isSliceOver()) await this.#nextSlice();
      const own = calendars.get(schedule.uid);
      const begin = () => walkOf(schedule, period, own);
      this.#stepInto(done, { schedule, calendars: own?.editions ?? null }, begin, atMost(FIRST_STEPS));
    }
    // A finished plan waits for the end of this round, so a round is short: the walks take turns.
    const roundEnd = clock.monotonic() + ROUND_MS;
    for (const walking of [...this.#walks.values()]) {
      if (clock.monotonic() >= roundEnd) break;
      if (this.#isSliceOver()) await this.#nextSlice();
      const mayGoOn = atLeastOnce(() => !this.#isSliceOver());
      this.#stepInto(done, walking, () => walking.walk, mayGoOn);
    }
    return done;
  }

  #isSliceOver(): boolean {
    return this.#deps.clock.monotonic() >= this.#sliceEnd;
  }

  async #nextSlice(): Promise<void> {
    await setImmediate();
    this.#sliceEnd = this.#deps.clock.monotonic() + SLICE_MS;
  }

  /** The newest lock of a walk that goes on: it guards the commit. */
  #renewed(schedule: LockedSchedule): boolean {
    const going = this.#walks.get(schedule.uid);
    if (going?.schedule.version !== schedule.version || going.schedule.edition !== schedule.edition) return false;
    if (going.schedule.nextOccurrenceAt !== schedule.nextOccurrenceAt) return false;
    this.#walks.set(schedule.uid, { ...going, schedule, isUnlocked: false });
    return true;
  }

  #stepInto(
    done: Planned,
    { schedule, calendars }: Pick<Walking, 'schedule' | 'calendars'>,
    begin: () => Walk,
    mayGoOn: () => boolean,
  ): void {
    const walks = this.#walks;
    try {
      const walk = begin();
      const plan = walk.step(mayGoOn);
      walks.delete(schedule.uid);
      if (plan) done.planned.push({ schedule, plan, calendars });
      if (!plan) walks.set(schedule.uid, { schedule, walk, calendars, isUnlocked: false });
      if (plan?.isPartial && plan.nextOccurrenceAt !== null) {
        const from = { ...schedule, nextOccurrenceAt: plan.nextOccurrenceAt };
        walks.set(schedule.uid, { schedule: from, walk, calendars, isUnlocked: true });
      }
    } catch (error) {
      walks.delete(schedule.uid);
      done.unplannable.push({ schedule, error });
    }
  }
}

function walkOf(
  schedule: LockedSchedule,
  period: Pick<PlanningPeriod, 'now' | 'horizon'>,
  calendars: ScheduleCalendars | undefined,
): Walk {
  if (!Number.isFinite(schedule.nextOccurrenceAt)) throw new Error('its next occurrence is no moment to plan from');
  const timing = timingOf(schedule.timing);
  for (const [id, edition] of calendars?.editions ?? [])
    if (edition === null) throw new Error(`it names a calendar that does not exist: ${id}`);
  const { plannedThrough, skips } = schedule;
  const times = fireTimes(timing, schedule, calendars?.histories);
  const from = beginningOf(times, schedule, calendars);
  const { observe, expiresAfterSeconds } = schedule;
  // Those of a schedule that observes are not skipped here; the others of it expire once they are recorded.
  const policy = { ...timing, expiresAfterSeconds: observe === null ? expiresAfterSeconds : null };
  return walkDue(times, policy, from, { ...period, plannedThrough, skips });
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
