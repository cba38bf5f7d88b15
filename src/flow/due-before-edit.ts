/**
 * Guarantees: what was due before an edit is recorded under the old definition; with jitter, so is what had its moment already and waits for its delay.
 * Transaction: that of the edit, under the row locks it holds.
 * If the process dies here: nothing of the edit is written, this included.
 */
import { setImmediate } from 'node:timers/promises';
import type { Instant } from '../core/instant.ts';
import { cursorUnder, movesTimes } from '../core/definition-change.ts';
import type { Schedule } from '../core/schedule.ts';
import {
  type Plan,
  type PlannedFire,
  horizonOf,
  lastFireOf,
  plannedFire,
  walkDue,
} from '../core/time/catch-up.ts';
import { fireTimes } from '../core/time/fire-times.ts';
import { NotNow } from '../store/errors.ts';
import type { Executor } from '../store/executor.ts';
import type { Aftermath } from '../store/followers.ts';
import { intentOf, recordDueBeforeEdit } from '../store/intents.ts';
import type { ScheduleWrite } from '../store/schedule-writes.ts';

export interface Edited {
  /** As it stands; null: it is created. */
  schedule: Schedule | null;
  /** What it is to be; its cursor and last fire are set here, behind what is recorded. Null: nothing changes. */
  write: ScheduleWrite | null;
}

export async function recordWhatWasDue(
  tx: Executor,
  edited: readonly Edited[],
  { now, retentionDays }: { now: Instant; retentionDays: number },
): Promise<Aftermath> {
  const due: ReturnType<typeof intentOf>[] = [];
  for (const { schedule, write } of edited) {
    // What a paused schedule has for its next is kept, not due.
    if (!schedule?.definition.enabled || !write) continue;
    if (schedule.nextOccurrenceAt === null || schedule.nextOccurrenceAt > now) continue;
    const plan = await planWholly(schedule, schedule.nextOccurrenceAt, { now, retentionDays });
    if (!plan) continue;
    const moved = movesTimes(schedule.definition, write.definition);
    const fires = moved && write.definition.enabled ? [...plan.fires, ...delayed(plan, now)] : plan.fires;
    for (const fire of fires) due.push(intentOf(schedule.uid, fire));
    write.lastFireAt = lastFireOf({ ...plan, fires }) ?? write.lastFireAt;
    const planned = { definition: schedule.definition, nextOccurrenceAt: plan.nextOccurrenceAt };
    Object.assign(write, cursorUnder(write.definition, planned, schedule, now));
  }
  return recordDueBeforeEdit(tx, due, now);
}

/** The occurrence whose moment has come and whose jitter has not passed: the new definition may not know of it. */
function delayed({ nextOccurrenceAt, nextFireAt }: Plan, now: Instant): PlannedFire[] {
  if (nextOccurrenceAt === null || nextFireAt === null || nextOccurrenceAt > now) return [];
  return [plannedFire({ at: nextOccurrenceAt, dueAt: nextFireAt }, 'schedule')];
}

const SLICE_STEPS = 200;
/** Rows are locked meanwhile, so it must not take long: half a second or so. */
const MOST_SLICES = 100;

/**
 * Null where the old definition cannot be planned at all: the edit is then what mends it.
 * @throws NotNow where too much was missed; the tick plans it, in its own time.
 */
async function planWholly(
  schedule: Schedule,
  from: Instant,
  { now, retentionDays }: { now: Instant; retentionDays: number },
): Promise<Plan | null> {
  try {
    const { definition } = schedule;
    const period = { now, horizon: horizonOf(now, retentionDays) };
    const walk = walkDue(fireTimes(definition, schedule), definition, from, period);
    for (let slice = 0; slice < MOST_SLICES; slice += 1) {
      let steps = 0;
      const plan = walk.step(() => (steps += 1) <= SLICE_STEPS);
      if (plan?.isPartial) break;
      if (plan) return plan;
      await setImmediate();
    }
  } catch {
    return null;
  }
  // It cannot be planned as its row is: nobody is catching up with it, and the edit is what mends it.
  if (schedule.error !== null) return null;
  throw new NotNow(
    `schedule ${schedule.id} has missed more than can be planned at once; it is being caught up with`,
  );
}
