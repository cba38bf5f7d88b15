/**
 * Guarantees: an edit of a calendar reaches the next fires of all its users, also if the instance that took the edit died meanwhile.
 * Transaction: those of move-next-fires.ts.
 * If the process dies here: any other instance finds the calendar, and goes on.
 */
import { reasonOf } from '../../runtime/reason.ts';
import type { Clock } from '../../runtime/clock.ts';
import { type Loop, createLoop } from '../../runtime/loop/loop.ts';
import { listUnapplied } from '../../store/calendars/find-calendars.ts';
import { type MoveNextFiresDeps, moveNextFires } from './move-next-fires.ts';

interface CalendarWatchDeps extends MoveNextFiresDeps {
  clock: Clock;
}

const INTERVAL_MS = 2_000;
/** The call that made the edit moves them itself, which usually takes less time. If both do it, each finds less to do. */
const LEFT_TO_CALLER_SECONDS = 5;
const BATCH = 100;
/** After this time, a calendar gives way to the next one; its moved next fires stay moved. */
const TURN_MS = 30_000;

export function createCalendarWatch(deps: CalendarWatchDeps): Loop {
  const { database, clock, events } = deps;
  let stopping = false;

  async function pass(): Promise<number> {
    const ids = await database.run((db) =>
      listUnapplied(db, { seconds: LEFT_TO_CALLER_SECONDS, limit: BATCH }),
    );
    const failures: unknown[] = [];
    for (const id of ids) {
      const until = clock.monotonic() + TURN_MS;
      // One calendar that fails does not stop the others.
      await moveNextFires(deps, id, () => !stopping && clock.monotonic() < until).catch((error: unknown) => {
        events.emit({ type: 'nextFiresNotMoved', calendarId: id, error: reasonOf(error) });
        failures.push(error);
      });
    }
    if (failures.length > 0) throw failures[0];
    events.emit({ type: 'calendarWatchPassed' });
    return INTERVAL_MS;
  }

  const loop = createLoop({ name: 'calendar-watch', clock, body: pass, events });
  return {
    ...loop,
    stop: async () => {
      stopping = true;
      await loop.stop();
    },
  };
}
