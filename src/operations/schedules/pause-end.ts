/**
 * Guarantees: a schedule that is paused until a moment is enabled again as of that moment, once, by any instance that lives; one that
 *   cannot be enabled keeps no other from it.
 * Transaction: that of an edit, one per batch, under the schedules' row locks; rows that others have locked are left for the next pass.
 * If the process dies here: the pause is still there, and any instance finds it; what was due meanwhile is caught up with.
 */
import { BY_FIRELOCK } from '../../core/time/definition-change.ts';
import type { Definition, Schedule } from '../../core/schedules/schedule.ts';
import type { Clock } from '../../runtime/clock.ts';
import { type Loop, createLoop } from '../../runtime/loop/loop.ts';
import { type Rests, createRests } from '../../runtime/loop/rests.ts';
import { batchFaultOf, isUnavailable } from '../../postgres/errors.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { seeTo } from '../../postgres/see-to.ts';
import { type EndedPause, findEndedPauses, lockEndedPauses, sayWhyStillPaused } from '../../store/schedules/watches.ts';
import { type ScheduleChangeDeps, changeFoundSchedules } from './schedule-changes.ts';

interface ResumerDeps extends ScheduleChangeDeps {
  clock: Clock;
  /** The longest sleep: this instance does not always learn that a pause was written with an end. */
  tickIntervalMs: number;
  /** There may be something to fire. */
  wakeTick: () => void;
}

const BATCH = 100;
/** For rows that another transaction has locked. */
const LOCKED_MS = 50;

interface State extends ResumerDeps {
  /** Schedules that could not be enabled. */
  rests: Rests;
}

export function createResumer(deps: ResumerDeps): Loop {
  const { clock, events } = deps;
  const state: State = { ...deps, rests: createRests({ clock, events, loop: 'pause-end' }) };
  return createLoop({ name: 'pause-end', clock, events, body: () => pass(state) });
}

async function pass(state: State): Promise<number> {
  const { database, rests, tickIntervalMs } = state;
  const besides = rests.keys();
  const { ended, nextInMs } = await database.run((db) => findEndedPauses(db, { limit: BATCH, besides }));
  let resumed = 0;
  await seeTo(rests, ended, {
    keyOf: ({ uid }) => uid,
    work: async (some) => void (resumed += await resume(state, some)),
    refused: ({ scheduleId }, error) => state.events.emit({ type: 'pauseNotEnded', scheduleId, error }),
    faultOf: (error) => batchFaultOf(error) ?? (isUnavailable(error) ? null : 'refused'),
  });
  if (resumed > 0) state.wakeTick();
  if (ended.length === BATCH && resumed > 0) return 0;
  const atMost = ended.length > resumed ? LOCKED_MS : tickIntervalMs;
  return Math.max(1, Math.min(atMost, nextInMs ?? Infinity));
}

/** Answers how many were enabled. */
async function resume(state: State, ended: readonly EndedPause[]): Promise<number> {
  const find = async (tx: Transaction) =>
    (await lockEndedPauses(tx, ended)).map((id) => ({ id, by: BY_FIRELOCK, scope: null, decide: asItIs }));
  const { resumed, stillPaused } = await changeFoundSchedules(state, find);
  for (const { schedule, error } of stillPaused) {
    state.rests.add(schedule.uid);
    state.events.emit({ type: 'pauseNotEnded', scheduleId: schedule.id, error });
  }
  await state.database.run((db) => sayWhyStillPaused(db, stillPaused));
  return resumed.length;
}

/** The end of the pause is the only change. */
function asItIs(current: Schedule | null): Definition {
  if (!current) throw new Error('its row was locked, and is gone');
  return current.definition;
}
