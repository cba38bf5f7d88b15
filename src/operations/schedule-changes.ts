/**
 * Guarantees: an edit, pause or delete first records what was due under the old definition, then takes effect; it
 *   never fires retroactively and never drops a fire.
 * Transaction: one per call, under the row locks of all schedules it names, taken in uid order.
 * If the process dies here: everything or nothing of the call is written.
 */
import type { Instant } from '../core/instant.ts';
import { type Schedule, type Target, calendarIdsOf } from '../core/schedules/schedule.ts';
import type { EventBus } from '../runtime/event-bus.ts';
import { createPace } from '../runtime/loop/slices.ts';
import { type Wake, wakeFor } from '../runtime/loop/wake.ts';
import type { Database } from '../postgres/database.ts';
import { databaseNow } from '../postgres/sql/database-now.ts';
import { TryAgain, isUniqueViolation } from '../postgres/errors.ts';
import type { Executor, Transaction } from '../postgres/executor.ts';
import type { KnownCalendars } from '../store/calendars/calendar-histories.ts';
import { linkCalendars } from '../store/calendars/calendar-users.ts';
import { followersOf } from '../store/effects/followers.ts';
import {
  type JudgedOverlaps,
  guardOpenRuns,
  judgeOverlapsNowOrSoon,
  workOf,
} from '../store/runs/overlaps.ts';
import { type ScheduleWrite, writeSchedules } from '../store/schedules/write-schedules.ts';
import { deleteScheduleAndAbandon } from '../store/schedules/delete-schedule.ts';
import { lockSchedules } from '../store/schedules/find-schedules.ts';
import type { TargetRegistry } from '../targets/registry.ts';
import { type Edited, planBeforeUpdate } from './plan-before-update.ts';
import { CannotFollow, resolveFollowed } from './followed-schedules.ts';
import { emitJudged } from './judged-overlaps.ts';
import { namedBy, shareCalendarsOf } from './named-calendars.ts';
import {
  type ChangedSchedule,
  type ScheduleChange,
  asWrite,
  changedSchedule,
  decide,
} from './schedule-writes.ts';

export interface ScheduleChangeDeps {
  database: Database;
  events: EventBus;
  targets: TargetRegistry;
  wake: Wake;
  /** Nothing older is planned. */
  retentionDays: number;
}

/** Others follow the schedule: it cannot be deleted. */
export class StillFollowed extends Error {
  override readonly name = 'StillFollowed';
  /** Their ids, or the first of them. */
  readonly followers: readonly string[];

  constructor(followers: readonly string[], andMore: boolean) {
    super(`followed by ${followers.join(', ')}${andMore ? ' and more' : ''}`);
    this.followers = followers;
  }
}

/**
 * Creates or replaces schedules, all or none; answers them in the order asked for. Each id once.
 * `check` is called once all is decided and nothing is written, and may throw; also, in its own words, what cannot follow.
 * @throws CannotFollow, NotNow, and whatever `decide` and `check` throw
 */
export async function changeSchedules(
  deps: ScheduleChangeDeps,
  changes: readonly ScheduleChange[],
  check: (cannotFollow: CannotFollow | null) => void = () => undefined,
): Promise<ChangedSchedule[]> {
  const { changed, recorded, judged } = await deps.database.transaction((tx) =>
    changeIn(tx, deps, changes, check),
  );
  const written = changed.flatMap(({ schedule: { id, version }, change }) =>
    change === 'unchanged' ? [] : [{ scheduleId: id, change, version }],
  );
  if (written.length > 0) deps.events.emit({ type: 'schedulesWritten', changes: written });
  wakeFor(deps.wake, {
    effects: recorded.effects,
    toClaim: recorded.recorded,
    toPull: recorded.recorded > 0,
  });
  if (judged) {
    emitJudged(deps.events, judged);
    wakeFor(deps.wake, workOf(judged));
  }
  return changed;
}

async function changeIn(
  tx: Transaction,
  deps: ScheduleChangeDeps,
  changes: readonly ScheduleChange[],
  check: (cannotFollow: CannotFollow | null) => void,
) {
  const current = await lockSchedules(
    tx,
    changes.map((change) => change.id),
  );
  const further = changes.flatMap(({ calendars: named }) => named ?? []);
  const calendars = await shareCalendarsOf(tx, current.values(), further);
  // Read after the locks were had: nothing that was due at a lock's release is missed.
  const now = await databaseNow(tx);
  const decided: Edited[] = [];
  // A thousand take their time.
  const pace = createPace();
  for (const change of changes) {
    await pace();
    decided.push(decide(deps.targets, change, current.get(change.id) ?? null, { now, calendars }));
  }
  const writes = decided.flatMap((one) => (one.write ? [one.write] : []));
  await resolveFollowed(tx, writes).catch((error: unknown) => {
    if (error instanceof CannotFollow) check(error);
    throw error;
  });
  check(null);
  const links = decided.flatMap((one) => namedBy(one, calendars));
  const recorded = await planBeforeUpdate(tx, decided, planningOf(deps, now, calendars));
  await writeOrTryAgain(tx, writes, now);
  await linkCalendars(tx, links);
  const judged = await judgeAnew(tx, decided);
  return { changed: decided.map((one) => changedSchedule(one, now)), recorded, judged };
}

function planningOf(
  { retentionDays, targets }: ScheduleChangeDeps,
  now: Instant,
  { histories: calendars }: KnownCalendars,
) {
  return { now, retentionDays, laneOf: (target: Target) => targets.laneOf(target), calendars };
}

/**
 * Deletes a schedule; its open runs are `abandoned`. `check` may throw, under the lock, to leave it. False: there is none.
 * @throws StillFollowed
 */
export async function deleteSchedule(
  deps: ScheduleChangeDeps,
  { id, by }: Pick<ScheduleChange, 'id' | 'by'>,
  check: (current: Schedule) => void,
): Promise<boolean> {
  const deleted = await deps.database.transaction(async (tx) => {
    const schedule = (await lockSchedules(tx, [id], 'update')).get(id);
    if (!schedule) return null;
    check(schedule);
    const followers = await followersOf(tx, schedule.uid, MAX_NAMED + 1);
    if (followers.length > 0)
      throw new StillFollowed(followers.slice(0, MAX_NAMED), followers.length > MAX_NAMED);
    const calendars = await shareCalendarsOf(tx, [schedule]);
    const now = await databaseNow(tx);
    const write = { ...asWrite(deps.targets, schedule, by), version: schedule.version + 1 };
    const recorded = await planBeforeUpdate(tx, [{ schedule, write }], planningOf(deps, now, calendars));
    await linkCalendars(tx, [{ uid: write.uid, before: calendarIdsOf(schedule.definition), after: [] }]);
    const { abandoned, effects } = await deleteScheduleAndAbandon(tx, write, now);
    return { version: write.version, abandoned, effects: effects + recorded.effects };
  });
  if (!deleted) return false;
  const { version, abandoned, effects } = deleted;
  deps.events.emit({ type: 'schedulesWritten', changes: [{ scheduleId: id, change: 'deleted', version }] });
  if (abandoned > 0)
    deps.events.emit({ type: 'runsAbandoned', reason: 'deleted', scheduleId: id, count: abandoned });
  wakeFor(deps.wake, { effects });
  return true;
}

/** More than a reader wants; the answer says that there are more. */
const MAX_NAMED = 100;

/** What waits is judged by the new definition, as if it came now; what is open counts from now on. */
async function judgeAnew(tx: Transaction, edited: readonly Edited[]): Promise<JudgedOverlaps | null> {
  const changed = edited.flatMap(({ schedule, write }) => (schedule && write ? [{ schedule, write }] : []));
  const guarded = changed.filter(({ write }) => write.definition.overlap !== 'allow');
  const newly = guarded.filter(({ schedule }) => schedule.definition.overlap === 'allow');
  const once = changed.filter(({ schedule }) => schedule.definition.overlap !== 'allow');
  if (newly.length > 0) await guardOpenRuns(tx, newly.map(uidOf));
  const uids = [...new Set([...guarded, ...once].map(uidOf))];
  return uids.length > 0 ? judgeOverlapsNowOrSoon(tx, uids) : null;
}

function uidOf({ schedule }: { schedule: Schedule }): string {
  return schedule.uid;
}

async function writeOrTryAgain(tx: Executor, writes: readonly ScheduleWrite[], now: Instant): Promise<void> {
  try {
    await writeSchedules(tx, writes, now);
  } catch (error) {
    // Another caller created one of the ids since they were read: the next round finds it there.
    if (isUniqueViolation(error))
      throw new TryAgain('a schedule of that id was created meanwhile', { cause: error });
    throw error;
  }
}
