/**
 * Guarantees: runs that may overlap are recorded with the claims that this instance has slots for, and only those claims are sent.
 * Transaction: one statement for the batch, guarded by lock, lock time and version. Where another transaction has a schedule's row, the
 *   batch is recorded under locks instead.
 * If the process dies here: either nothing was written, or the runs are recorded. Any instance claims those without a claim;
 *   recovery takes over those that the dead instance had claimed.
 */
import { isLockedByOthers } from '../../postgres/errors.ts';
import { newlyClaimedRun } from '../../store/runs/claims/claimed-run.ts';
import { recordIntentsIfLocked } from '../../store/runs/intents/record-intents.ts';
import type { Dispatcher } from '../dispatch/dispatch.ts';
import type { PlannedSchedule } from '../plan.ts';
import { type RecordUnderLocksDeps, recordUnderLocks } from './record-under-locks.ts';
import { type Fire, advanceOf, emitRecorded, firesOf, intentIn, wakeForRecorded } from './recorded-fires.ts';

export interface RecordAloneDeps extends RecordUnderLocksDeps {
  dispatcher: Pick<Dispatcher, 'reserve' | 'unreserve' | 'accept'>;
}

export async function recordAlone(deps: RecordAloneDeps, planned: readonly PlannedSchedule[]): Promise<void> {
  const { database, dispatcher } = deps;
  // All of the batch is recorded under this id. If the instance gets a new id meanwhile, the statement's guard writes nothing.
  const { instanceId } = deps.lease;
  const fires = firesOf(planned);
  const reserved: Fire[] = [];
  for (const fire of fires) {
    fire.intent.claimed = mayBeClaimed(fire) && dispatcher.reserve(fire.schedule.lane);
    if (fire.intent.claimed) reserved.push(fire);
  }
  const recorded = await database
    .run((db) =>
      recordIntentsIfLocked(db, instanceId, planned.map(advanceOf), fires.map(intentIn), { alone: true }),
    )
    .catch((error: unknown) => {
      dispatcher.unreserve(reserved.map(({ schedule }) => schedule.lane));
      if (isLockedByOthers(error)) return null;
      throw error;
    });
  if (recorded === null) {
    deps.events.emit({ type: 'batchHeldUp', loop: 'tick', count: planned.length });
    await recordUnderLocks(deps, planned);
    return;
  }
  const mine = reserved.filter(({ intent }) => recorded.inserted(intent.id));
  const notMine = reserved.filter(({ intent }) => !recorded.inserted(intent.id));
  dispatcher.unreserve(notMine.map(({ schedule }) => schedule.lane));
  dispatcher.accept(
    mine.map(({ schedule, intent }) => newlyClaimedRun(schedule, intent, instanceId, recorded.claimedAt)),
  );
  const inserted = emitRecorded(deps.events, planned, fires, recorded);
  wakeForRecorded(deps.wake, inserted, recorded.effects);
}

/** Not where it is skipped, nor where it has to wait for a place of its limit. */
function mayBeClaimed({ schedule, intent }: Fire): boolean {
  return intent.skipped === null && schedule.limitId === null;
}
