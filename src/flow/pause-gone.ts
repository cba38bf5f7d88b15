/**
 * Guarantees: a schedule whose target answered 410 Gone is paused, unless it points elsewhere, is paused or is another schedule by then.
 * Transaction: that of an edit, one per schedule, under its row lock.
 * If the process dies here: the schedule stays as it is; its next run meets the same answer.
 */
import { isDeepStrictEqual } from 'node:util';
import { pausedBecause } from '../core/definition-change.ts';
import type { Target } from '../core/schedule.ts';
import type { Clock } from '../runtime/clock.ts';
import { type Turning, createLoop, turningOf } from '../runtime/loop.ts';
import { isUnavailable } from '../store/errors.ts';
import { versionKey } from '../store/handoffs.ts';
import type { HandoffDefinitions } from './handoff-definitions.ts';
import { type ScheduleChangeDeps, changeSchedules } from './schedule-changes.ts';

/** A run whose target says that it is gone, for good. */
export interface GoneTarget {
  runId: string;
  scheduleId: string;
  scheduleUid: string;
  scheduleVersion: number;
}

export interface GonePauserDeps extends ScheduleChangeDeps {
  clock: Clock;
  definitions: HandoffDefinitions;
}

export interface GonePauser extends Turning {
  add(gone: GoneTarget): void;
}

const IDLE_MS = 60_000;
const BY = 'firelock';

export function createGonePauser(deps: GonePauserDeps): GonePauser {
  const { clock, definitions, events } = deps;
  /** By version: its runs all say the same. */
  const waiting = new Map<string, GoneTarget>();
  const loop = createLoop({ name: 'pause-gone', clock, body: pass, events });

  async function pass(): Promise<number> {
    const [next] = waiting;
    if (next === undefined) return IDLE_MS;
    const [key, gone] = next;
    // Behind the others, should it fail.
    waiting.delete(key);
    try {
      await pause(gone);
    } catch (error) {
      // Anything else is of the schedule itself, and would be there again; its next run has it tried anew.
      if (isUnavailable(error)) add(key, gone);
      throw error;
    }
    events.emit({ type: 'goneSeenTo' });
    return waiting.size > 0 ? 0 : IDLE_MS;
  }

  async function pause(gone: GoneTarget): Promise<void> {
    const { runId, scheduleId } = gone;
    const handoff = (await definitions.load([gone])).get(versionKey(gone));
    // Its version has gone with old history, or cannot be read: what it pointed at, nobody knows.
    if (!handoff) return;
    const reason = `the target answered 410 Gone to run ${runId}`;
    if (await pauseIfTargetIs(deps, gone, handoff.target, reason))
      events.emit({ type: 'schedulePaused', scheduleId, reason });
  }

  function add(key: string, gone: GoneTarget): void {
    if (!waiting.has(key)) waiting.set(key, gone);
  }

  return {
    ...turningOf(loop),
    add: (gone) => {
      add(versionKey(gone), gone);
      loop.wake();
    },
  };
}

/** False: it is another schedule by now, or paused, or points elsewhere. */
async function pauseIfTargetIs(
  deps: ScheduleChangeDeps,
  { scheduleId, scheduleUid }: GoneTarget,
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
