/**
 * Guarantees: what an effect says about pausing a schedule is done, by the rule of its kind: `pause-gone.ts`, `pause-failing.ts`.
 * Transaction: that of an edit, one per schedule, under its row lock; then one statement that deletes the effect.
 * If the process dies here: the effect is still there; any instance finds it, and what is paused already stays as it is.
 */
import type { KeyRing } from '../../core/secrets/key-ring.ts';
import type { Clock } from '../../runtime/clock.ts';
import { type Turning, createLoop, turningOf } from '../../runtime/loop/loop.ts';
import { reasonOf } from '../../runtime/reason.ts';
import { isUnavailable } from '../../postgres/errors.ts';
import { type Effect, deleteEffects, putOffEffect } from '../../store/effects/effect-rows.ts';
import { versionKey } from '../../store/schedules/load-handoffs.ts';
import type { ScheduleChangeDeps } from '../../operations/schedules/schedule-changes.ts';
import type { HandoffDefinitions } from '../handoff/handoff-definitions.ts';
import { pauseFailing } from './pause-failing.ts';
import { pauseGone } from './pause-gone.ts';

interface PauserDeps extends ScheduleChangeDeps {
  clock: Clock;
  definitions: HandoffDefinitions;
  secrets: KeyRing;
}

/** A loop of its own: a schedule whose row is locked for long holds up no other effect. */
export interface Pauser extends Turning {
  add(effects: readonly Effect[]): void;
}

const IDLE_MS = 60_000;
const PUT_OFF_SECONDS = 60;

export function createPauser(deps: PauserDeps): Pauser {
  /** By kind and version, since the runs of a version all say the same. */
  const waiting = new Map<string, Effect[]>();
  const body = () => pauseNext(deps, waiting);
  const loop = createLoop({ name: 'pause', clock: deps.clock, body, events: deps.events });
  return {
    ...turningOf(loop),
    add: (effects) => {
      for (const effect of effects) add(waiting, effect);
      loop.wake();
    },
  };
}

function add(waiting: Map<string, Effect[]>, effect: Effect): void {
  const key = `${effect.kind} ${versionKey(effect)}`;
  const others = waiting.get(key) ?? [];
  if (!others.some(({ id }) => id === effect.id)) waiting.set(key, [...others, effect]);
}

async function pauseNext(deps: PauserDeps, waiting: Map<string, Effect[]>): Promise<number> {
  const [next] = waiting;
  if (next === undefined) return IDLE_MS;
  const [key, effects] = next;
  waiting.delete(key);
  const ids = effects.map(({ id }) => id);
  try {
    const [first, last] = [effects[0], effects.at(-1)];
    if (first?.kind === 'gone') await pauseGone(deps, first);
    else if (last) await pauseFailing(deps, last);
    await deps.database.run((db) => deleteEffects(db, ids));
  } catch (error) {
    // Behind the others, until the database is back.
    if (isUnavailable(error)) for (const effect of effects) add(waiting, effect);
    else for (const id of ids) await putOff(deps, id, error);
    throw error;
  }
  return waiting.size > 0 ? 0 : IDLE_MS;
}

async function putOff({ database }: PauserDeps, id: number, error: unknown): Promise<void> {
  const why = { error: reasonOf(error), seconds: PUT_OFF_SECONDS };
  await database.run((db) => putOffEffect(db, id, why)).catch(() => undefined);
}
