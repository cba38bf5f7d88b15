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

/** How long planning may keep the process from everything else. */
const SLICE_MS = 10;

export function createPlanner(clock: Clock): Planner {
  const walks = new Map<string, { schedule: LockedSchedule; walk: Walk }>();

  async function round(locked: readonly LockedSchedule[], now: Instant): Promise<Planned> {
    const done: Planned = { planned: [], unplannable: [] };
    const begun = locked.map((schedule) => ({ schedule, begin: () => walkOf(schedule, now) }));
    const goingOn = [...walks.values()].map(({ schedule, walk }) => ({ schedule, begin: () => walk }));
    let sliceEnd = clock.monotonic() + SLICE_MS;
    for (const { schedule, begin } of [...begun, ...goingOn]) {
      if (clock.monotonic() >= sliceEnd) {
        await setImmediate();
        sliceEnd = clock.monotonic() + SLICE_MS;
      }
      stepInto(done, schedule, begin, () => clock.monotonic() < sliceEnd);
    }
    return done;
  }

  function stepInto(
    done: Planned,
    schedule: LockedSchedule,
    begin: () => Walk,
    mayGoOn: () => boolean,
  ): void {
    try {
      const walk = begin();
      const plan = walk.step(atLeastOnce(mayGoOn));
      if (plan) {
        walks.delete(schedule.uid);
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
  return walkDue(cronTimes(schedule.cron, schedule.timezone), schedule.nextOccurrenceAt, now);
}

/** However little of the slice is left, each schedule gets some way. */
function atLeastOnce(mayGoOn: () => boolean): () => boolean {
  let steps = 0;
  return () => {
    steps += 1;
    return steps <= 2 || mayGoOn();
  };
}
