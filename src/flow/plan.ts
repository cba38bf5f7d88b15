/**
 * Guarantees: every occurrence up to now is in the plan, each row by itself: one that cannot be planned is set aside and stops nobody.
 * Transaction: none; nothing is written here.
 * If the process dies here: nothing has happened; the cursor in the row still points at the first of these fires.
 */
import { setImmediate } from 'node:timers/promises';
import type { Instant } from '../core/instant.ts';
import { type Plan, type Walk, walkDue } from '../core/time/catch-up.ts';
import { cronTimes } from '../core/time/cron.ts';
import type { Clock } from '../runtime/clock.ts';
import type { LockedSchedule } from '../store/fire-locks.ts';

export interface PlannedSchedule {
  schedule: LockedSchedule;
  plan: Plan;
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
 * schedules are planned and committed in between; it stays under its fire-lock and is decided as of its start.
 */
export interface Planner {
  round(locked: readonly LockedSchedule[], now: Instant): Promise<Planned>;
  /** Schedules whose walk is not finished. */
  walking(): string[];
}

/** How far a schedule is planned at once, before it becomes a walk that takes turns with others. */
const FIRST_STEPS = 16;
/** For walks, in each round. */
const ROUND_MS = 50;
/** How long planning may keep the process from everything else. */
const SLICE_MS = 10;

export function createPlanner(clock: Clock): Planner {
  const walks = new Map<string, { schedule: LockedSchedule; walk: Walk }>();

  async function round(locked: readonly LockedSchedule[], now: Instant): Promise<Planned> {
    const done: Planned = { planned: [], unplannable: [] };
    const fresh = locked.filter((schedule) => !renewed(schedule));
    for (const { uid } of fresh) walks.delete(uid);
    let sliceEnd = clock.monotonic() + SLICE_MS;
    const breathe = async (): Promise<void> => {
      if (clock.monotonic() < sliceEnd) return;
      await setImmediate();
      sliceEnd = clock.monotonic() + SLICE_MS;
    };
    for (const schedule of fresh) {
      await breathe();
      stepInto(done, schedule, () => walkOf(schedule, now), atMost(FIRST_STEPS));
    }
    // What is done waits for this round's end, so a round is short: the walks go on in turns.
    const roundEnd = clock.monotonic() + ROUND_MS;
    for (const { schedule, walk } of [...walks.values()]) {
      if (clock.monotonic() >= roundEnd) break;
      await breathe();
      stepInto(
        done,
        schedule,
        () => walk,
        atLeastOnce(() => clock.monotonic() < sliceEnd),
      );
    }
    return done;
  }

  /** The lock of a walk that goes on: its commit is guarded by the newest. */
  function renewed(schedule: LockedSchedule): boolean {
    const going = walks.get(schedule.uid);
    if (going?.schedule.version !== schedule.version) return false;
    if (going.schedule.nextOccurrenceAt !== schedule.nextOccurrenceAt) return false;
    walks.set(schedule.uid, { ...going, schedule });
    return true;
  }

  function stepInto(
    done: Planned,
    schedule: LockedSchedule,
    begin: () => Walk,
    mayGoOn: () => boolean,
  ): void {
    try {
      const walk = begin();
      const plan = walk.step(mayGoOn);
      walks.delete(schedule.uid);
      if (plan) {
        done.planned.push({ schedule, plan });
      } else {
        walks.set(schedule.uid, { schedule, walk });
      }
    } catch (error) {
      walks.delete(schedule.uid);
      done.unplannable.push({ schedule, error });
    }
  }

  return { round, walking: () => [...walks.keys()] };
}

function walkOf(schedule: LockedSchedule, now: Instant): Walk {
  const { cron, timezone, nextOccurrenceAt } = schedule;
  if (!Number.isFinite(nextOccurrenceAt)) throw new Error('its next occurrence is no moment to plan from');
  return walkDue(cronTimes(cron, timezone), nextOccurrenceAt, now);
}

function atMost(steps: number): () => boolean {
  let left = steps;
  return () => (left -= 1) >= 0;
}

/** However little of the slice is left, each schedule gets some way. */
function atLeastOnce(mayGoOn: () => boolean): () => boolean {
  let steps = 0;
  return () => {
    steps += 1;
    return steps <= 2 || mayGoOn();
  };
}
