/**
 * Guarantees: a fire's intent is durable before anything is sent, and the cursor moves on only together with it; a schedule that the
 *   database refuses is set aside and holds up no other.
 * Transaction: one statement for the batch, guarded by lock, lock time and version; a lost lock writes nothing (`fenced`). Where runs
 *   must not overlap, a fire is skipped on request, a schedule names calendars, or another transaction has a schedule's row: one
 *   transaction, which takes the row locks first (calendars, then schedules), records, and judges overlaps.
 * If the process dies here: either nothing was written, or the runs are recorded. Any instance claims those without a claim;
 *   recovery takes over those that the dead instance had claimed.
 */
import type { ScopeShares } from '../core/access/scope.ts';
import type { Database } from '../postgres/database.ts';
import { batchFaultOf, isLockedByOthers } from '../postgres/errors.ts';
import type { Transaction } from '../postgres/executor.ts';
import type { EventBus } from '../runtime/event-bus.ts';
import type { ConfirmedCommits } from '../runtime/confirmed-commits.ts';
import type { Lease } from '../runtime/instance-lease.ts';
import { eachInTurn, inHalves } from '../runtime/loop/batch.ts';
import { type Wake, wakeFor } from '../runtime/loop/wake.ts';
import { reasonOf } from '../runtime/reason.ts';
import { shareFreeCalendars } from '../store/calendars/calendar-histories.ts';
import { recordIntentsIfLocked } from '../store/runs/intents/record-intents.ts';
import { emitJudged, judgeOverlapsNowOrSoon, workOf } from '../store/runs/overlaps.ts';
import { lockFreeSchedules } from '../store/schedules/search/find-schedules.ts';
import { setAsideIfLocked } from '../store/schedules/fire-locks.ts';
import { deletePlannedSkips } from '../store/schedules/skips.ts';
import {
  type Fire,
  type RoomDeps,
  advanceOf,
  emitRecorded,
  firesWithRoom,
  giveUpRoom,
  intentIn,
  sendClaimed,
  uidOf,
  wakeForRecorded,
} from './recorded-fires.ts';
import type { Planned, PlannedSchedule, UnplannableSchedule } from './plan.ts';

export interface RecordIntentDeps extends RoomDeps {
  database: Database;
  events: EventBus;
  commits: Pick<ConfirmedCommits, 'note'>;
  lease: Lease;
  wake: Wake;
  /** Which scopes have lanes of their own. */
  scopeShares: ScopeShares;
}

export async function recordIntents(
  deps: RecordIntentDeps,
  { planned, unplannable }: Planned,
  now: number,
): Promise<void> {
  const refused: UnplannableSchedule[] = [];
  const failure = await recordPlanned(deps, planned, refused).then(
    () => null,
    (error: unknown) => ({ error }),
  );
  // Done whatever happened to the others: a schedule that cannot be planned or recorded must not come back at once.
  const aside = [...unplannable, ...refused];
  if (aside.length > 0) await setAside(deps, aside, now);
  if (failure) throw failure.error;
}

async function recordPlanned(
  deps: RecordIntentDeps,
  planned: readonly PlannedSchedule[],
  refused: UnplannableSchedule[],
): Promise<void> {
  const sorted = [...planned].sort((a, b) => (a.schedule.uid < b.schedule.uid ? -1 : 1));
  // The requests to skip these fires are deleted in the same transaction.
  const isPlain = ({ schedule, calendars }: PlannedSchedule) =>
    schedule.overlap === 'allow' && schedule.skips.size === 0 && calendars === null;
  const recordingBy = (work: (batch: readonly PlannedSchedule[]) => Promise<void>) => ({
    work,
    faultOf: batchFaultOf,
    wasSetAside: ({ schedule }: PlannedSchedule) => schedule.planFailures > 0,
    setAside: ({ schedule }: PlannedSchedule, error: unknown) =>
      void refused.push({ schedule, error: reasonOf(error) }),
  });
  const alone = recordingBy((batch) => recordInOneStatement(deps, batch));
  const underLocks = recordingBy((batch) => recordUnderLocks(deps, batch));
  await eachInTurn(
    [
      ...batchesOf(sorted.filter(isPlain)).map((batch) => ({ batch, recording: alone })),
      ...batchesOf(sorted.filter((one) => !isPlain(one))).map((batch) => ({
        batch,
        recording: underLocks,
      })),
    ],
    ({ batch, recording }) => inHalves(batch, recording),
  );
}

/** The most schedules for one statement, give or take one. */
const MAX_BATCH = 5_000;

function batchesOf(planned: readonly PlannedSchedule[]): PlannedSchedule[][] {
  const batches: PlannedSchedule[][] = [];
  let fires = MAX_BATCH;
  for (const one of planned) {
    if (fires >= MAX_BATCH) {
      batches.push([]);
      fires = 0;
    }
    batches.at(-1)?.push(one);
    fires += one.plan.fires.length;
  }
  return batches;
}

/** Where another transaction has a schedule's row, the batch is recorded under locks instead. */
async function recordInOneStatement(deps: RecordIntentDeps, planned: readonly PlannedSchedule[]): Promise<void> {
  const { database, scopeShares } = deps;
  // All of the batch is recorded under this id. If the instance gets a new id meanwhile, the statement's guard writes nothing.
  const { instanceId } = deps.lease;
  const fires = firesWithRoom(deps, planned);
  const recorded = await database
    .run((db) =>
      recordIntentsIfLocked(db, instanceId, planned.map(advanceOf), fires.map(intentIn), {
        alone: true,
        scopeShares,
      }),
    )
    .catch((error: unknown) => {
      giveUpRoom(deps, fires);
      if (isLockedByOthers(error)) return null;
      throw error;
    });
  if (recorded === null) {
    deps.events.emit({ type: 'batchHeldUp', loop: 'tick', count: planned.length });
    await recordUnderLocks(deps, planned);
    return;
  }
  sendClaimed(deps, fires, instanceId, recorded);
  const inserted = emitRecorded(deps, planned, fires, recorded);
  wakeForRecorded(deps.wake, inserted, recorded);
}

/**
 * Runs that must not overlap start here where none of their schedule is open, under locks taken before; else they are recorded as
 * waiting, and judged in the same transaction. A row that another transaction has locked holds up no other: such a schedule is left to
 * the next round, and one with such a run is judged soon after.
 */
async function recordUnderLocks(deps: RecordIntentDeps, planned: readonly PlannedSchedule[]): Promise<void> {
  const { instanceId } = deps.lease;
  const withRoom = firesWithRoom(deps, planned);
  const written = await deps.database
    .transaction((tx) => writeUnderLocks(tx, deps.scopeShares, { instanceId, planned, withRoom }))
    .catch((error: unknown) => {
      giveUpRoom(deps, withRoom);
      throw error;
    });
  const { free, fires, recorded, judged, outdated } = written;
  const recordedOnes = new Set(fires);
  giveUpRoom(
    deps,
    withRoom.filter((fire) => !recordedOnes.has(fire)),
  );
  sendClaimed(deps, fires, instanceId, recorded);
  if (outdated > 0) deps.events.emit({ type: 'fireLocks', outcome: 'fenced', count: outdated });
  const inserted = emitRecorded(deps, free, fires, recorded);
  emitJudged(deps.events, judged);
  wakeForRecorded(deps.wake, inserted, recorded);
  wakeFor(deps.wake, workOf(judged));
}

interface Batch {
  instanceId: string;
  planned: readonly PlannedSchedule[];
  /** Their fires, with the claims that there is room for. */
  withRoom: readonly Fire[];
}

async function writeUnderLocks(tx: Transaction, scopeShares: ScopeShares, { instanceId, planned, withRoom }: Batch) {
  const current = await withCurrentCalendars(tx, planned);
  const locked = new Set((await lockFreeSchedules(tx, current.map(uidOf))).free);
  const free = current.filter((one) => locked.has(uidOf(one)));
  const fires = withRoom.filter(({ schedule }) => locked.has(schedule.uid));
  const recorded = await recordIntentsIfLocked(tx, instanceId, free.map(advanceOf), fires.map(intentIn), {
    alone: false,
    scopeShares,
  });
  await deletePlannedSkips(tx, free.filter(({ schedule }) => schedule.skips.size > 0).map(uidOf));
  const toJudge = fires.filter(({ intent }) => recorded.waits(intent.id)).map(({ schedule }) => schedule.uid);
  const judged = await judgeOverlapsNowOrSoon(tx, [...new Set(toJudge)]);
  return { free, fires, recorded, judged, outdated: planned.length - current.length };
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
    [...(calendars ?? [])].every(([id, edition]) => current.get(id) === edition),
  );
}

const MIN_RETRY_MS = 5_000;
const MAX_RETRY_MS = 15 * 60_000;

async function setAside(
  deps: RecordIntentDeps,
  unplannable: readonly UnplannableSchedule[],
  now: number,
): Promise<void> {
  const rows = unplannable.map(({ schedule, error }) => {
    const failures = schedule.planFailures + 1;
    const wait = Math.min(MAX_RETRY_MS, MIN_RETRY_MS * 2 ** Math.min(failures - 1, 20));
    const message = error instanceof Error ? error.message : String(error);
    const { uid, version, lockedAt } = schedule;
    return { uid, version, lockedAt, error: message, failures, retryAt: now + wait, scheduleId: schedule.id };
  });
  const effects = await deps.database.run((db) => setAsideIfLocked(db, deps.lease.instanceId, rows));
  wakeFor(deps.wake, { effects });
  for (const { scheduleId, error, failures, retryAt } of rows) {
    deps.events.emit({ type: 'scheduleSetAside', scheduleId, error, failures, retryAt });
  }
}
