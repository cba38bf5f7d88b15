/**
 * Guarantees: an edit of a calendar reaches the next fires of all its users, also if the instance that took the edit died meanwhile.
 * Transaction: those of move-next-fires.ts.
 * If the process dies here: any other instance finds the calendar, and goes on where this one was.
 */
import { reasonOf } from '../../runtime/reason.ts';
import type { Clock } from '../../runtime/clock.ts';
import { type Loop, createLoop } from '../../runtime/loop/loop.ts';
import { giveUpWalks } from '../../store/calendars/calendar-cursors.ts';
import { listUnapplied } from '../../store/calendars/calendar-rows.ts';
import { type MoveNextFiresDeps, moveNextFires } from './move-next-fires.ts';
import { type MoveProgress, noProgress } from './walk-progress.ts';

interface CalendarWatchDeps extends MoveNextFiresDeps {
  clock: Clock;
}

const INTERVAL_MS = 2_000;
/** The call that made the edit moves them itself, as far as it comes in its time. */
const LEFT_TO_CALLER_SECONDS = 5;
const BATCH = 100;
/** After this time a calendar gives way to the next one, which is long enough for a page. */
const TURN_MS = 2_000;
/** A pass comes back soon, so that the watchdog sees the loop turn; the next one goes on behind it. */
const PASS_MS = 10_000;

interface State extends CalendarWatchDeps {
  /** By calendar: where the next turn goes on. */
  progress: Map<string, MoveProgress>;
  /** The calendar that had the last turn. */
  last: string;
  stopping: boolean;
}

export function createCalendarWatch(deps: CalendarWatchDeps): Loop {
  const { clock, events } = deps;
  const state: State = { ...deps, progress: new Map(), last: '', stopping: false };
  const loop = createLoop({ name: 'calendar-watch', clock, body: () => pass(state), events });
  return {
    ...loop,
    stop: async () => {
      state.stopping = true;
      await loop.stop();
      await deps.database.run((db) => giveUpWalks(db, walkersOf(state))).catch(() => undefined);
    },
  };
}

async function pass(state: State): Promise<number> {
  const { clock, database, events, progress } = state;
  const passEnd = clock.monotonic() + PASS_MS;
  const ids = await database.run((db) =>
    listUnapplied(db, {
      ...{ seconds: LEFT_TO_CALLER_SECONDS, after: state.last, limit: BATCH },
      walkers: walkersOf(state),
    }),
  );
  if (ids.length < BATCH) for (const id of progress.keys()) if (!ids.includes(id)) progress.delete(id);
  const failures: unknown[] = [];
  let isMore = false;
  for (const id of ids) {
    if (state.stopping || clock.monotonic() >= passEnd) {
      isMore = true;
      break;
    }
    state.last = id;
    // One calendar that fails does not stop the others.
    await turn(state, id).then(
      (hasMore) => (isMore ||= hasMore),
      (error: unknown) => {
        events.emit({ type: 'nextFiresNotMoved', calendarId: id, scheduleId: null, error: reasonOf(error) });
        failures.push(error);
      },
    );
  }
  if (failures.length > 0) throw failures[0];
  return isMore ? MORE_MS : INTERVAL_MS;
}

const MORE_MS = 50;

function walkersOf({ progress }: State): string[] {
  return [...progress.values()].map(({ walker }) => walker);
}

/** Answers whether there is more to do for this calendar now. */
async function turn(state: State, id: string): Promise<boolean> {
  const { clock } = state;
  const progress = state.progress.get(id) ?? noProgress();
  state.progress.set(id, progress);
  const until = clock.monotonic() + TURN_MS;
  const mayGoOn = () => !state.stopping && clock.monotonic() < until;
  const isDone = await moveNextFires(state, id, { mayGoOn, waits: false, progress });
  if (isDone) state.progress.delete(id);
  return !isDone && progress.isTaken && !progress.isAtEnd;
}
