/**
 * Guarantees: runs that must not overlap are recorded as waiting and judged before other transactions see them; nothing is recorded by
 *   a version of a calendar that is not the newest any more; a row that another transaction has locked holds up no other.
 * Transaction: one, which takes the row locks first (calendars, then schedules), records, and judges.
 * If the process dies here: nothing was written, or all of it; what waits is found and judged by any instance.
 */
import type { Database } from '../../postgres/database.ts';
import type { Transaction } from '../../postgres/executor.ts';
import type { EventBus } from '../../runtime/event-bus.ts';
import type { Lease } from '../../runtime/instance-lease.ts';
import { type Wake, wakeFor } from '../../runtime/loop/wake.ts';
import { shareFreeCalendars } from '../../store/calendars/share-calendars.ts';
import { emitJudged, judgeOverlapsNowOrSoon, workOf } from '../../store/runs/overlaps.ts';
import { lockFreeSchedules } from '../../store/schedules/search/lock-free-schedules.ts';
import { deletePlannedSkips } from '../../store/schedules/skips.ts';
import { recordIntentsIfLocked } from '../../store/runs/intents/record-intents.ts';
import type { PlannedSchedule } from '../plan.ts';
import { advanceOf, emitRecorded, firesOf, intentIn, uidOf, wakeForRecorded } from './recorded-fires.ts';

export interface RecordUnderLocksDeps {
  database: Database;
  events: EventBus;
  lease: Lease;
  wake: Wake;
}

/**
 * Runs that must not overlap are recorded as waiting, and judged in the same transaction, under locks taken before. A row that another
 * transaction has locked holds up no other: such a schedule is left to the next round, and one with such a run is judged soon after.
 */
export async function recordUnderLocks(
  deps: RecordUnderLocksDeps,
  planned: readonly PlannedSchedule[],
): Promise<void> {
  const { instanceId } = deps.lease;
  const { free, fires, recorded, judged, outdated } = await deps.database.transaction(async (tx) => {
    const current = await withCurrentCalendars(tx, planned);
    const locked = new Set((await lockFreeSchedules(tx, current.map(uidOf))).free);
    const own = current.filter((one) => locked.has(uidOf(one)));
    const toRecord = firesOf(own);
    const advances = own.map(advanceOf);
    const written = await recordIntentsIfLocked(tx, instanceId, advances, toRecord.map(intentIn), {
      alone: false,
    });
    await deletePlannedSkips(tx, own.filter(({ schedule }) => schedule.skips.size > 0).map(uidOf));
    return {
      outdated: planned.length - current.length,
      free: own,
      fires: toRecord,
      recorded: written,
      judged: await judgeOverlapsNowOrSoon(tx, own.map(uidOf)),
    };
  });
  if (outdated > 0) deps.events.emit({ type: 'fireLocks', outcome: 'fenced', count: outdated });
  const inserted = emitRecorded(deps.events, free, fires, recorded);
  emitJudged(deps.events, judged);
  wakeForRecorded(deps.wake, inserted, recorded.effects);
  wakeFor(deps.wake, workOf(judged));
}

/**
 * Those that were planned by the calendars as they are, which stay so until the transaction ends. The others keep their fire-lock: this
 * instance plans them again in its next round, which the end of the edit wakes.
 */
async function withCurrentCalendars(
  tx: Transaction,
  planned: readonly PlannedSchedule[],
): Promise<readonly PlannedSchedule[]> {
  const ids = new Set(planned.flatMap(({ calendars }) => (calendars === null ? [] : [...calendars.keys()])));
  if (ids.size === 0) return planned;
  const current = await shareFreeCalendars(tx, [...ids]);
  return planned.filter(({ calendars }) =>
    [...(calendars ?? [])].every(([id, version]) => current.get(id) === version),
  );
}
