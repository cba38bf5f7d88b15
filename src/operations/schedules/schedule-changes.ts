/**
 * Guarantees: an edit, pause or delete first records what was due under the old definition, then takes effect; it
 *   never fires retroactively and never drops a fire. (During maintenance: plan-before-update.ts.)
 * Transaction: one per call, under the row locks of all schedules it names, taken in uid order.
 * If the process dies here: everything or nothing of the call is written.
 */
import { type ScopeShares, NO_SHARES, sees } from '../../core/access/scope.ts';
import { laneInScope } from '../../core/runs/run-lane.ts';
import type { Instant } from '../../core/instant.ts';
import type { Schedule, ScheduleTarget } from '../../core/schedules/schedule.ts';
import type { KeyRing } from '../../core/secrets/key-ring.ts';
import type { EventBus } from '../../runtime/event-bus.ts';
import { createPace } from '../../runtime/loop/slices.ts';
import { type Wake, wakeFor } from '../../runtime/loop/wake.ts';
import type { Database } from '../../postgres/database.ts';
import { databaseNow, limitLockWaits } from '../../postgres/sql/rows.ts';
import { isUniqueViolation, TryAgain } from '../../postgres/errors.ts';
import type { Executor, Transaction } from '../../postgres/executor.ts';
import type { KnownCalendars } from '../../store/calendars/calendar-histories.ts';
import { linkCalendars } from '../../store/calendars/calendar-cursors.ts';
import { emitJudged, type JudgedOverlaps, workOf } from '../../store/runs/overlaps.ts';
import { type ScheduleWrite, writeSchedules } from '../../store/schedules/write-schedules.ts';
import { lockFreeSchedules, lockSchedules } from '../../store/schedules/search/find-schedules.ts';
import { skipsOf } from '../../store/schedules/skips.ts';
import type { TargetRegistry } from '../../targets/target.ts';
import { type Edited, planBeforeUpdate } from './plan-before-update.ts';
import { refuseTooManySchedules } from '../scope-caps.ts';
import { emitResumed, type ResumedSchedules, resumeEnded, type StillPaused, writeResumed } from './ended-pauses.ts';
import { type CheckNames, checkNames, type NamingWrite } from './check-names.ts';
import { judgeEdited, keepAlerts, keepWatches, type SignedEdit } from './follow-edits.ts';
import { namedBy, shareCalendarsOf } from '../calendars/named-calendars.ts';
import { keepPingKeys } from '../observed/keep-ping-keys.ts';
import { type ChangedSchedule, changedSchedule, decide, type ScheduleChange } from './schedule-writes.ts';
import { keepFiresToCome, uidWithSkips } from './skip-fires.ts';

export interface ScheduleChangeDeps {
  database: Database;
  /**
   * Writes what a caller has changed into the audit, in the transaction that changes it: the schedules, and their previous states (null:
   * there was none), in the same order. Not called if all stay as they were.
   */
  note?: (tx: Transaction, changed: readonly ChangedSchedule[], before: readonly (Schedule | null)[]) => Promise<void>;
  events: EventBus;
  targets: TargetRegistry;
  wake: Wake;
  /** Nothing older is planned. */
  retentionDays: number;
  /** Encrypts keys of those that observe. */
  secrets?: KeyRing;
  /** Which scopes have lanes of their own, and how many schedules each may have. */
  scopeShares?: ScopeShares;
}

/**
 * Creates or replaces schedules, all or none; answers them in the order asked for. Each id once.
 * `check` is called once all is decided and nothing is written, and may throw; also, in its own words, what cannot follow, and limits
 * that there are not.
 * @throws CannotFollow, NotNow, OperationRefused, and whatever `decide` and `check` throw
 */
export async function changeSchedules(
  deps: ScheduleChangeDeps,
  changes: readonly ScheduleChange[],
  check: CheckNames = () => undefined,
): Promise<ChangedSchedule[]> {
  return (await changeFoundSchedules(deps, () => Promise.resolve(changes), check)).changed;
}

interface FoundSchedulesChanged {
  changed: ChangedSchedule[];
  /** The schedules among them whose pause was over, as they were written because of that. */
  resumed: readonly ScheduleWrite[];
  stillPaused: readonly StillPaused[];
}

/** As changeSchedules. `find` says which changes, in the same transaction, before any other statement of it. */
export async function changeFoundSchedules(
  deps: ScheduleChangeDeps,
  find: (tx: Transaction) => Promise<readonly ScheduleChange[]>,
  check: CheckNames = () => undefined,
): Promise<FoundSchedulesChanged> {
  const done = await deps.database.transaction(async (tx) => changeIn(tx, deps, await find(tx), check));
  announce(deps, done);
  return { changed: done.changed, resumed: done.ended.writes, stillPaused: done.ended.stillPaused };
}

/**
 * Does everything, and takes it back: a dry run is refused when the call itself would be. Answers the schedules as they
 * would have become. @throws as changeSchedules
 */
export async function tryToChangeSchedules(...given: Parameters<typeof changeSchedules>): Promise<ChangedSchedule[]> {
  const [deps, changes, check = () => undefined] = given;
  let changed: ChangedSchedule[] = [];
  const takenBack = new Error('this is taken back');
  await deps.database
    .transaction(async (tx) => {
      ({ changed } = await changeIn(tx, deps, changes, check));
      throw takenBack;
    })
    .catch((error: unknown) => {
      if (error !== takenBack) throw error;
    });
  return changed;
}

/**
 * Changes schedules that exist, all or none of those that no other transaction has locked; `locked` are the uids of the others. What has
 * been deleted is in neither answer.
 * @throws CannotFollow, NotNow, whatever `decide` throws, and where another lock is not had at once (isLockedByOthers)
 */
export async function changeFreeSchedules(
  deps: ScheduleChangeDeps,
  changes: readonly (ScheduleChange & { uid: string })[],
): Promise<{ changed: ChangedSchedule[]; locked: string[] }> {
  const uids = changes.map(({ uid }) => uid);
  const { locked, ...done } = await deps.database.transaction(async (tx) => {
    await limitLockWaits(tx);
    const { free, locked } = await lockFreeSchedules(tx, uids);
    const isFree = new Set(free);
    const toChange = changes.filter(({ uid }) => isFree.has(uid));
    return { locked, ...(await changeIn(tx, deps, toChange, () => undefined)) };
  });
  announce(deps, done);
  return { changed: done.changed, locked };
}

/** Called once it is committed. */
function announce(deps: ScheduleChangeDeps, { changed, ended, recorded, judged }: Changed): void {
  emitResumed(deps.events, ended.writes);
  const written = changed.flatMap(({ schedule: { id, version }, change }) =>
    change === 'unchanged' ? [] : [{ scheduleId: id, change, version }],
  );
  if (written.length > 0) deps.events.emit({ type: 'schedulesWritten', changes: written });
  const isAny = recorded.recorded > 0;
  const { effects, recorded: toClaim } = recorded;
  wakeFor(deps.wake, { effects, toClaim, toPull: isAny, toAdmit: isAny, messages: written.length });
  emitJudged(deps.events, judged);
  wakeFor(deps.wake, workOf(judged));
}

interface Changed {
  changed: ChangedSchedule[];
  ended: ResumedSchedules;
  recorded: { effects: number; recorded: number };
  judged: JudgedOverlaps;
}

async function changeIn(
  tx: Transaction,
  deps: ScheduleChangeDeps,
  changes: readonly ScheduleChange[],
  check: CheckNames,
): Promise<Changed> {
  const ids = changes.map((change) => change.id);
  const found = await lockSchedules(tx, ids);
  const further = changes.flatMap(({ calendars: named = [], scope }) => named.filter((id) => sees(scope, id)));
  const calendars = await shareCalendarsOf(tx, found.values(), further);
  // Read after the locks were taken: so nothing that was due when a lock was released is missed.
  const now = await databaseNow(tx);
  const ended = resumeEnded(found, now, calendars.histories);
  const { decided, naming } = await decideEach(deps, changes, { current: ended.current, now, calendars });
  const writes = naming.map(({ write }) => write);
  await checkNames(tx, naming, check);
  const links = decided.flatMap((one) => namedBy(one, calendars));
  const skips = await skipsOf(tx, decided.flatMap(uidWithSkips));
  const recorded = await planBeforeUpdate(tx, decided, { ...planningOf(deps, now, calendars), skips });
  await writeResumed(tx, ended, now);
  await writeOrTryAgain(tx, writes, now);
  await linkCalendars(tx, links);
  await keepFiresToCome(tx, decided, { skips, calendars: calendars.histories }, now);
  const judged = await judgeEdited(tx, decided);
  const changed = decided.map((one) => changedSchedule(one, now));
  const edits = editsOf(decided, changed, now);
  await keepWatches(tx, edits);
  await keepPingKeys(tx, deps.secrets, edits);
  recorded.effects += await keepAlerts(tx, edits);
  if (edits.length > 0) await deps.note?.(tx, changed, decided.map(scheduleOf));
  await refuseTooManySchedules(tx, deps.scopeShares, changed);
  return { changed, ended, recorded, judged };
}

const scheduleOf = ({ schedule }: Edited) => schedule;

/** `naming`: of those that change something. */
async function decideEach(
  { targets }: ScheduleChangeDeps,
  changes: readonly ScheduleChange[],
  { current: found, ...given }: Pick<ResumedSchedules, 'current'> & Parameters<typeof decide>[3],
): Promise<{ decided: Edited[]; naming: NamingWrite[] }> {
  const decided: Edited[] = [];
  const naming: NamingWrite[] = [];
  // A thousand schedules take their time.
  const pace = createPace();
  for (const change of changes) {
    await pace();
    const current = found.get(change.id) ?? null;
    const one = decide(targets, change, current, given);
    decided.push(one);
    const before = current?.definition ?? null;
    if (one.write) naming.push({ write: one.write, before, scope: change.scope });
  }
  return { decided, naming };
}

function editsOf(decided: readonly Edited[], changed: readonly ChangedSchedule[], at: Instant): SignedEdit[] {
  return changed.flatMap(({ schedule: after, change }, index) => {
    const { schedule: before = null, write = null } = decided[index] ?? {};
    return change === 'unchanged' ? [] : [{ before, after, at, by: write?.by ?? null }];
  });
}

export function planningOf(
  { retentionDays, targets, scopeShares = NO_SHARES }: ScheduleChangeDeps,
  now: Instant,
  { histories: calendars }: Pick<KnownCalendars, 'histories'>,
) {
  const laneOf = (target: ScheduleTarget, id: string) => laneInScope(scopeShares, targets.laneOf(target), id);
  return { now, retentionDays, laneOf, calendars };
}

async function writeOrTryAgain(tx: Executor, writes: readonly ScheduleWrite[], now: Instant): Promise<void> {
  try {
    await writeSchedules(tx, writes, now);
  } catch (error) {
    // Another caller has created one of the ids meanwhile: the next round finds it.
    if (isUniqueViolation(error)) throw new TryAgain('a schedule of that id was created meanwhile', { cause: error });
    throw error;
  }
}
