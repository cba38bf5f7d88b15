/**
 * Guarantees: an edit, pause or delete first records what was due under the old definition, then takes effect; it never fires retroactively and never drops a fire.
 * Transaction: one per call, under the row locks of all schedules it names, taken in uid order.
 * If the process dies here: everything or nothing of the call is written.
 */
import { randomUUID } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { Instant } from '../core/instant.ts';
import type { Definition, Schedule } from '../core/schedule.ts';
import { type Plan, walkDue } from '../core/time/catch-up.ts';
import { cronTimes } from '../core/time/cron.ts';
import type { EventBus } from '../runtime/event-bus.ts';
import type { Database } from '../store/database.ts';
import { databaseNow } from '../store/database-now.ts';
import { NotNow, TryAgain, isUniqueViolation } from '../store/errors.ts';
import type { Executor } from '../store/executor.ts';
import { intentOf, recordDueBeforeEdit } from '../store/intents.ts';
import { type ScheduleWrite, deleteScheduleAndAbandon, writeSchedules } from '../store/schedule-writes.ts';
import { lockSchedules } from '../store/schedules.ts';
import type { TargetRegistry } from '../targets/registry.ts';

export interface ScheduleChangeDeps {
  database: Database;
  targets: TargetRegistry;
  events: EventBus;
}

export interface ScheduleChange {
  id: string;
  /**
   * Decides under the schedule's row lock what it is to be, given what it is (null: it does not exist).
   * A definition equal to the present one changes nothing. Throwing leaves everything as it was.
   */
  decide: (current: Schedule | null) => Definition;
}

export interface ChangedSchedule {
  schedule: Schedule;
  change: 'created' | 'updated' | 'unchanged';
}

/** Creates or replaces schedules, all or none; answers them in the order asked for. Each id once. */
export async function changeSchedules(
  deps: ScheduleChangeDeps,
  changes: readonly ScheduleChange[],
): Promise<ChangedSchedule[]> {
  const changed = await deps.database.transaction(async (tx) => {
    const current = await lockSchedules(
      tx,
      changes.map((change) => change.id),
    );
    // Read after the locks were had: nothing that was due at a lock's release is missed.
    const now = await databaseNow(tx);
    const decided = changes.map((change) => decide(deps, change, current.get(change.id) ?? null, now));
    await recordWhatWasDue(tx, decided, now);
    const writes = decided.flatMap((one) => (one.write ? [one.write] : []));
    await writeOrTryAgain(tx, writes, now);
    return decided.map((one) => told(one, now));
  });
  const written = changed.flatMap(({ schedule: { id, version }, change }) =>
    change === 'unchanged' ? [] : [{ scheduleId: id, change, version }],
  );
  if (written.length > 0) deps.events.emit({ type: 'schedulesWritten', changes: written });
  return changed;
}

/** Deletes a schedule; its open runs are `abandoned`. `check` may throw, under the lock, to leave it. False: there is none. */
export async function deleteSchedule(
  deps: ScheduleChangeDeps,
  id: string,
  check: (current: Schedule) => void,
): Promise<boolean> {
  const deleted = await deps.database.transaction(async (tx) => {
    const schedule = (await lockSchedules(tx, [id])).get(id);
    if (!schedule) return null;
    check(schedule);
    const now = await databaseNow(tx);
    const write = { ...asWrite(deps, schedule), version: schedule.version + 1 };
    await recordWhatWasDue(tx, [{ schedule, write }], now);
    return { version: write.version, abandoned: await deleteScheduleAndAbandon(tx, write, now) };
  });
  if (!deleted) return false;
  const { version, abandoned } = deleted;
  deps.events.emit({ type: 'schedulesWritten', changes: [{ scheduleId: id, change: 'deleted', version }] });
  if (abandoned > 0) deps.events.emit({ type: 'runsAbandoned', reason: 'deleted', count: abandoned });
  return true;
}

interface Decided {
  schedule: Schedule | null;
  /** Null: nothing changes. */
  write: ScheduleWrite | null;
}

function decide(
  deps: ScheduleChangeDeps,
  change: ScheduleChange,
  current: Schedule | null,
  now: Instant,
): Decided {
  const definition = change.decide(current);
  const lane = laneOf(deps, definition);
  if (!current) {
    const next = firstOccurrence(definition, now);
    const born = { uid: randomUUID(), version: 1, lastFireAt: null, createdAt: now };
    return { schedule: null, write: { ...born, id: change.id, definition, lane, nextOccurrenceAt: next } };
  }
  if (sameDefinition(current.definition, definition)) return { schedule: current, write: null };
  const moved = !sameTimes(current.definition, definition);
  return {
    schedule: current,
    write: {
      ...asWrite(deps, current),
      version: current.version + 1,
      definition,
      lane,
      nextOccurrenceAt: moved ? firstOccurrence(definition, now) : current.nextOccurrenceAt,
    },
  };
}

/** Plans each changed schedule under its old definition; where fire times stay, the plan moves the cursor on as well. */
async function recordWhatWasDue(tx: Executor, decided: readonly Decided[], now: Instant): Promise<void> {
  const due: ReturnType<typeof intentOf>[] = [];
  for (const { schedule, write } of decided) {
    if (!schedule || !write || schedule.nextOccurrenceAt === null || schedule.nextOccurrenceAt > now)
      continue;
    const plan = await planWholly(schedule, schedule.nextOccurrenceAt, now);
    if (!plan) continue;
    for (const fire of plan.fires) due.push(intentOf(schedule.uid, fire));
    write.lastFireAt = plan.fires.at(-1)?.scheduledFor ?? write.lastFireAt;
    if (sameTimes(schedule.definition, write.definition)) write.nextOccurrenceAt = plan.nextOccurrenceAt;
  }
  await recordDueBeforeEdit(tx, due, now);
}

const SLICE_STEPS = 200;
/** Rows are locked meanwhile, so it must not take long: half a second or so. */
const MOST_SLICES = 100;

/**
 * Null where the old definition cannot be planned at all: the edit is then what mends it.
 * @throws NotNow where too much was missed; the tick plans it, in its own time.
 */
async function planWholly(schedule: Schedule, from: Instant, now: Instant): Promise<Plan | null> {
  try {
    const walk = walkDue(cronTimes(schedule.definition.cron, schedule.definition.timezone), from, now);
    for (let slice = 0; slice < MOST_SLICES; slice += 1) {
      let steps = 0;
      const plan = walk.step(() => (steps += 1) <= SLICE_STEPS);
      if (plan) return plan;
      await setImmediate();
    }
  } catch {
    return null;
  }
  throw new NotNow(
    `schedule ${schedule.id} has missed more than can be planned at once; it is being caught up with`,
  );
}

async function writeOrTryAgain(tx: Executor, writes: readonly ScheduleWrite[], now: Instant): Promise<void> {
  try {
    await writeSchedules(tx, writes, now);
  } catch (error) {
    // Somebody created one of the ids since they were read: the next round finds it there.
    if (isUniqueViolation(error))
      throw new TryAgain('a schedule of that id was created meanwhile', { cause: error });
    throw error;
  }
}

function told({ schedule, write }: Decided, now: Instant): ChangedSchedule {
  if (!write) {
    if (!schedule) throw new Error('a schedule that does not exist cannot stay as it is');
    return { schedule, change: 'unchanged' };
  }
  const { definition, nextOccurrenceAt } = write;
  return {
    change: schedule ? 'updated' : 'created',
    schedule: {
      ...write,
      status: !definition.enabled ? 'paused' : nextOccurrenceAt === null ? 'ended' : 'active',
      error: null,
      nextFireAt: nextOccurrenceAt,
      lockedBy: null,
      lockedAt: null,
      updatedAt: now,
    },
  };
}

function asWrite(deps: ScheduleChangeDeps, schedule: Schedule): ScheduleWrite {
  const { uid, id, version, definition, nextOccurrenceAt, lastFireAt, createdAt } = schedule;
  return {
    uid,
    id,
    version,
    definition,
    lane: laneOf(deps, definition),
    nextOccurrenceAt,
    lastFireAt,
    createdAt,
  };
}

function laneOf(deps: ScheduleChangeDeps, definition: Definition): string {
  return deps.targets.laneOf(definition.target);
}

/** Unpausing does not replay: time passed while it was paused. */
function firstOccurrence(definition: Definition, now: Instant): Instant | null {
  return definition.enabled ? cronTimes(definition.cron, definition.timezone).next(now) : null;
}

function sameTimes(a: Definition, b: Definition): boolean {
  return a.cron === b.cron && a.timezone === b.timezone && a.enabled === b.enabled;
}

function sameDefinition(a: Definition, b: Definition): boolean {
  return a.payload === b.payload && isDeepStrictEqual({ ...a, payload: null }, { ...b, payload: null });
}
