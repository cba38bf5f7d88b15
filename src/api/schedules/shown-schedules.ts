import type { Calendars } from '../../core/exclusions/exclusion.ts';
import { calendarReachOf } from '../../core/days/day-times.ts';
import type { Schedule } from '../../core/schedules/schedule.ts';
import { calendarIdsOf } from '../../core/timing/timing.ts';
import { fireTimes } from '../../core/time/fire-times.ts';
import { firstUnskipped } from '../../core/time/skipped-fires.ts';
import { createPace } from '../../runtime/loop/slices.ts';
import type { Database } from '../../postgres/database.ts';
import { readCalendars } from '../../store/calendars/calendar-histories.ts';
import { firstSkipsOf, type Skips } from '../../store/schedules/skips.ts';
import { type Caller, mayCall } from '../../core/access/roles.ts';
import { owns } from '../../core/access/scope.ts';
import { readPingKeys } from '../../store/runs/observed.ts';
import type { ApiDeps } from '../deps.ts';
import { answerSchedule } from './answers.ts';

/**
 * Completes schedules for an answer: `nextFireAt` is the next fire that will be made. The stored value is the next
 * moment at which the planner looks at the schedule, even if it then only records a skipped fire.
 */
export async function withNextFires(database: Database, schedules: readonly Schedule[]): Promise<Schedule[]> {
  const uids = schedules.flatMap(({ uid, hasSkips }) => (hasSkips ? [uid] : []));
  if (uids.length === 0) return [...schedules];
  const skipping = schedules.filter(({ hasSkips }) => hasSkips);
  const { skips, calendars } = await database.run(async (db) => {
    const since = Math.min(
      ...skipping.flatMap(({ nextOccurrenceAt, definition }) =>
        nextOccurrenceAt === null ? [] : nextOccurrenceAt - calendarReachOf(definition),
      ),
    );
    const ids = skipping.flatMap(({ definition }) => calendarIdsOf(definition));
    return {
      skips: await firstSkipsOf(db, uids),
      calendars: (await readCalendars(db, ids, since)).histories,
    };
  });
  const pace = createPace();
  const answered: Schedule[] = [];
  for (const schedule of schedules) {
    const own = skips.get(schedule.uid);
    if (own) await pace();
    answered.push(own ? withNextFire(schedule, own, calendars) : schedule);
  }
  return answered;
}

function withNextFire(schedule: Schedule, skips: Skips, calendars: Calendars): Schedule {
  const { nextFireAt, nextOccurrenceAt, definition } = schedule;
  if (nextFireAt === null || nextOccurrenceAt === null || !skips.has(nextOccurrenceAt)) return schedule;
  try {
    const times = fireTimes(definition, schedule, calendars);
    const next = firstUnskipped(times, nextOccurrenceAt, skips);
    return { ...schedule, nextFireAt: next === null ? null : times.dueAt(next) };
  } catch {
    // The schedule cannot be planned: the tick will report that.
    return schedule;
  }
}

/** The keys of observed schedules, by uid, as far as the caller may have their jobs report. Asks only about these. */
export function shownKeys(
  { database, secrets }: Pick<ApiDeps, 'database' | 'secrets'>,
  { role, scope }: Caller,
  schedules: readonly Schedule[],
): Promise<ReadonlyMap<string, string>> {
  const observed = schedules.filter(({ definition }) => definition.observe !== null);
  const uids = observed.filter(({ id }) => mayCall(role, 'operator') && owns(scope, id)).map(({ uid }) => uid);
  return uids.length === 0 ? Promise.resolve(new Map()) : database.run((db) => readPingKeys(db, secrets, uids));
}

/** As this caller sees it. */
export async function answerTo(
  deps: Pick<ApiDeps, 'database' | 'secrets'>,
  caller: Caller,
  schedule: Schedule,
): Promise<ReturnType<typeof answerSchedule>> {
  const keys = await shownKeys(deps, caller, [schedule]);
  return answerSchedule(schedule, keys.get(schedule.uid) ?? null);
}
