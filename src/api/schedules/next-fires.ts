import type { Schedule } from '../../core/schedules/schedule.ts';
import { fireTimes } from '../../core/time/fire-times.ts';
import { firstUnskipped } from '../../core/time/skipped-fires.ts';
import { createPace } from '../../runtime/loop/slices.ts';
import type { Database } from '../../postgres/database.ts';
import { type Skips, skipsOf } from '../../store/schedules/skips.ts';

/**
 * Schedules as they are to be answered: `nextFireAt` is the next fire that is to be made. The stored one is the next moment at which the
 * planner looks at the schedule, also if it only records a skipped fire.
 */
export async function withNextFires(database: Database, schedules: readonly Schedule[]): Promise<Schedule[]> {
  const uids = schedules.flatMap(({ uid, hasSkips }) => (hasSkips ? [uid] : []));
  if (uids.length === 0) return [...schedules];
  const skips = await database.run((db) => skipsOf(db, uids));
  const pace = createPace();
  const answered: Schedule[] = [];
  for (const schedule of schedules) {
    const own = skips.get(schedule.uid);
    if (own) await pace();
    answered.push(own ? withNextFire(schedule, own) : schedule);
  }
  return answered;
}

function withNextFire(schedule: Schedule, skips: Skips): Schedule {
  const { nextFireAt, nextOccurrenceAt, definition } = schedule;
  if (nextFireAt === null || nextOccurrenceAt === null || !skips.has(nextOccurrenceAt)) return schedule;
  try {
    const times = fireTimes(definition, schedule);
    const next = firstUnskipped(times, nextOccurrenceAt, new Set(skips.keys()));
    return { ...schedule, nextFireAt: next === null ? null : times.dueAt(next) };
  } catch {
    // It cannot be planned: the tick says so soon.
    return schedule;
  }
}
