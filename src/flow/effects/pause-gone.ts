/**
 * Guarantees: a schedule whose target answered 410 Gone is paused, unless it now has another target, is paused already, or is another
 *   schedule of the same id.
 * Transaction: that of an edit, one per schedule, under its row lock; then one statement that deletes the effect.
 * If the process dies here: the effect is still there; any instance finds it, and what is paused already stays as it is.
 */
import { isDeepStrictEqual } from 'node:util';
import { pausedBecause } from '../../core/schedules/definition-change.ts';
import type { Target } from '../../core/schedules/schedule.ts';
import type { Clock } from '../../runtime/clock.ts';
import { type Turning, createLoop, turningOf } from '../../runtime/loop/loop.ts';
import { reasonOf } from '../../runtime/reason.ts';
import { type Effect, deleteEffects, putOffEffect } from '../../store/effects/effect-rows.ts';
import { isUnavailable } from '../../postgres/errors.ts';
import { versionKey } from '../../store/schedules/load-handoffs.ts';
import type { HandoffDefinitions } from '../handoff/handoff-definitions.ts';
import { type ScheduleChangeDeps, changeSchedules } from '../../operations/schedule-changes.ts';

interface GonePauserDeps extends ScheduleChangeDeps {
  clock: Clock;
  definitions: HandoffDefinitions;
}

/** A loop of its own: a schedule whose row is locked for long holds up no other effect. */
export interface GonePauser extends Turning {
  add(gone: readonly Effect[]): void;
}

const IDLE_MS = 60_000;
const PUT_OFF_SECONDS = 60;
const BY = 'firelock';

export function createGonePauser(deps: GonePauserDeps): GonePauser {
  /** By version, since its runs all say the same. */
  const waiting = new Map<string, Effect[]>();
  const body = () => pauseNext(deps, waiting);
  const loop = createLoop({ name: 'pause-gone', clock: deps.clock, body, events: deps.events });
  return {
    ...turningOf(loop),
    add: (gone) => {
      for (const effect of gone) add(waiting, effect);
      loop.wake();
    },
  };
}

function add(waiting: Map<string, Effect[]>, effect: Effect): void {
  const key = versionKey(effect);
  const others = waiting.get(key) ?? [];
  if (!others.some(({ id }) => id === effect.id)) waiting.set(key, [...others, effect]);
}

async function pauseNext(deps: GonePauserDeps, waiting: Map<string, Effect[]>): Promise<number> {
  const [next] = waiting;
  if (next === undefined) return IDLE_MS;
  const [key, effects] = next;
  waiting.delete(key);
  const ids = effects.map(({ id }) => id);
  try {
    const [first] = effects;
    if (first) await pause(deps, first);
    await deps.database.run((db) => deleteEffects(db, ids));
  } catch (error) {
    // Behind the others, until the database is back.
    if (isUnavailable(error)) for (const effect of effects) add(waiting, effect);
    else for (const id of ids) await putOff(deps, id, error);
    throw error;
  }
  deps.events.emit({ type: 'goneSeenTo' });
  return waiting.size > 0 ? 0 : IDLE_MS;
}

async function putOff({ database }: GonePauserDeps, id: number, error: unknown): Promise<void> {
  const why = { error: reasonOf(error), seconds: PUT_OFF_SECONDS };
  await database.run((db) => putOffEffect(db, id, why)).catch(() => undefined);
}

async function pause(deps: GonePauserDeps, gone: Effect): Promise<void> {
  const { runId, scheduleId } = gone;
  const handoff = (await deps.definitions.load([gone])).get(versionKey(gone));
  // Its version has gone with old history, or cannot be read: what it pointed at is not known any more.
  if (!handoff || scheduleId === null) return;
  const reason = `the target answered 410 Gone to run ${runId}`;
  if (await pauseIfTargetIs(deps, { ...gone, scheduleId }, handoff.target, reason))
    deps.events.emit({ type: 'schedulePaused', scheduleId, reason });
}

/** False: it is another schedule by now, or paused, or points elsewhere. */
async function pauseIfTargetIs(
  deps: ScheduleChangeDeps,
  { scheduleId, scheduleUid }: { scheduleId: string; scheduleUid: string },
  target: Target,
  reason: string,
): Promise<boolean> {
  try {
    const [changed] = await changeSchedules(deps, [
      {
        id: scheduleId,
        by: BY,
        decide: (current) => {
          if (current?.uid !== scheduleUid || !isDeepStrictEqual(current.definition.target, target))
            throw new NothingToPause();
          return current.definition.enabled ? pausedBecause(current.definition, reason) : current.definition;
        },
      },
    ]);
    return changed?.change === 'updated';
  } catch (error) {
    if (error instanceof NothingToPause) return false;
    throw error;
  }
}

/** Thrown under the lock, so that nothing is written. */
class NothingToPause extends Error {
  override readonly name = 'NothingToPause';
}
