/**
 * Guarantees: a schedule whose target answered 410 Gone is paused, unless it now has another target, is paused already, or is another
 *   schedule of the same id.
 * Transaction: that of an edit, under the schedule's row lock.
 * If the process dies here: the effect is still there (pauser.ts), and what is paused already stays as it is.
 */
import { isDeepStrictEqual } from 'node:util';
import type { KeyRing } from '../../core/secrets/key-ring.ts';
import { openTarget } from '../../core/secrets/target-secrets.ts';
import { pausedBecause } from '../../core/schedules/definition-change.ts';
import type { Schedule, Target } from '../../core/schedules/schedule.ts';
import type { Effect } from '../../store/effects/effect-rows.ts';
import { versionKey } from '../../store/schedules/load-handoffs.ts';
import type { HandoffDefinitions } from '../handoff/handoff-definitions.ts';
import { BY_FIRELOCK } from '../../operations/schedules/ended-pauses.ts';
import { type ScheduleChangeDeps, changeSchedules } from '../../operations/schedules/schedule-changes.ts';

interface GoneDeps extends ScheduleChangeDeps {
  secrets: KeyRing;
  definitions: HandoffDefinitions;
}

export async function pauseGone(deps: GoneDeps, gone: Effect): Promise<void> {
  const { runId, scheduleId } = gone;
  const handoff = (await deps.definitions.load([gone])).get(versionKey(gone));
  // Its version has gone with old history, or cannot be read: what it pointed at is not known any more.
  if (!handoff || scheduleId === null) return;
  const reason = `the target answered 410 Gone to run ${runId}`;
  if (await pauseIfTargetIs(deps, { ...gone, scheduleId }, handoff.target, reason))
    deps.events.emit({ type: 'schedulePaused', scheduleId, reason });
}

/** False: it is another schedule by now, or paused, or has another target. */
async function pauseIfTargetIs(
  deps: GoneDeps,
  { scheduleId, scheduleUid }: { scheduleId: string; scheduleUid: string },
  target: Target<string>,
  reason: string,
): Promise<boolean> {
  try {
    const [changed] = await changeSchedules(deps, [
      {
        id: scheduleId,
        by: BY_FIRELOCK,
        decide: (current) => {
          if (current?.uid !== scheduleUid || !isThis(deps.secrets, current, target))
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

/** The same secret values may be encrypted differently by now. */
function isThis(secrets: KeyRing, { uid, definition }: Schedule, target: Target<string>): boolean {
  try {
    return isDeepStrictEqual(openTarget(secrets, uid, definition.target), target);
  } catch {
    return false;
  }
}

/** Thrown under the lock, so that nothing is written. */
class NothingToPause extends Error {
  override readonly name = 'NothingToPause';
}
