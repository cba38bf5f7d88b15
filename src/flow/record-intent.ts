/**
 * Guarantees: a fire's intent is durable before anything is sent, and the cursor moves on only together with it; a schedule that the
 *   database refuses is set aside and holds up no other.
 * Transaction: one statement for the batch, guarded by lock, lock time and version; a lost lock writes nothing (`fenced`). Where runs
 *   must not overlap, or another transaction has a schedule's row: one transaction, which takes the row locks first, records, and judges.
 * If the process dies here: either nothing was written, or the runs are there to be found, some of them claimed by the dead.
 */
import type { MissedFires } from '../core/events.ts';
import { SKIP_REASONS, lastFireOf } from '../core/time/catch-up.ts';
import { eachInTurn, inHalves } from '../runtime/loop/batch.ts';
import type { EventBus } from '../runtime/event-bus.ts';
import type { Lease } from '../runtime/instance-lease.ts';
import { reasonOf } from '../runtime/reason.ts';
import { type Wake, wakeFor } from '../runtime/loop/wake.ts';
import type { Database } from '../postgres/database.ts';
import { isDataRefused, isLockedByOthers } from '../postgres/errors.ts';
import { type LockedSchedule, setAsideIfLocked } from '../store/schedules/fire-locks.ts';
import { queueOfLane } from '../store/queues/queue-lanes.ts';
import type { ClaimedRun } from '../store/runs/claims/claims.ts';
import { judgeOverlapsNowOrSoon, lockFreeSchedules, workOf } from '../store/runs/overlaps.ts';
import {
  type Advance,
  type Intent,
  type Recorded,
  intentOf,
  recordIntentsIfLocked,
} from '../store/runs/record-intents.ts';
import type { Dispatcher } from './dispatch/dispatch.ts';
import { emitJudged } from '../operations/judged-overlaps.ts';
import type { Planned, PlannedSchedule, UnplannableSchedule } from './plan.ts';

export interface RecordIntentDeps {
  database: Database;
  events: EventBus;
  lease: Lease;
  dispatcher: Pick<Dispatcher, 'reserve' | 'unreserve' | 'accept'>;
  wake: Wake;
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
  // Whatever became of the others: what cannot be planned or recorded must not come back at once.
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
  const mayOverlap = (one: PlannedSchedule) => one.schedule.overlap === 'allow';
  const recordingBy = (work: (batch: readonly PlannedSchedule[]) => Promise<void>) => ({
    work,
    isRefused: isDataRefused,
    setAside: ({ schedule }: PlannedSchedule, error: unknown) =>
      void refused.push({ schedule, error: reasonOf(error) }),
  });
  const alone = recordingBy((batch) => recordBatch(deps, batch));
  const underLocks = recordingBy((batch) => recordUnderLocks(deps, batch));
  await eachInTurn(
    [
      ...batchesOf(sorted.filter(mayOverlap)).map((batch) => ({ batch, recording: alone })),
      ...batchesOf(sorted.filter((one) => !mayOverlap(one))).map((batch) => ({
        batch,
        recording: underLocks,
      })),
    ],
    ({ batch, recording }) => inHalves(batch, recording),
  );
}

/** Written by one statement at most, give or take one schedule. */
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

interface Fire {
  schedule: LockedSchedule;
  intent: Intent;
}

async function recordBatch(deps: RecordIntentDeps, planned: readonly PlannedSchedule[]): Promise<void> {
  const { database, dispatcher } = deps;
  // What it reserves and records is this id's; another one meanwhile, and the guard of the statement sees to it.
  const { instanceId } = deps.lease;
  const fires = firesOf(planned);
  const reserved: Fire[] = [];
  for (const fire of fires) {
    fire.intent.claimed = fire.intent.skipped === null && dispatcher.reserve(fire.schedule.lane);
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
    mine.map(({ schedule, intent }) => claimedRun(schedule, intent, instanceId, recorded.claimedAt)),
  );
  const inserted = emitRecorded(deps.events, planned, fires, recorded);
  wakeForRecorded(deps.wake, inserted, recorded.effects);
}

/** Of those that were recorded and that this instance does not send itself. */
function wakeForRecorded(wake: Wake, recorded: readonly Fire[], effects: number): void {
  const open = recorded.filter(({ intent }) => !intent.claimed && intent.skipped === null);
  const pending = open.filter(({ schedule }) => schedule.overlap === 'allow');
  const toPull = pending.filter(({ schedule }) => queueOfLane(schedule.lane) !== null);
  wakeFor(wake, { effects, toClaim: pending.length - toPull.length, toPull: toPull.length > 0 });
}

/**
 * Runs that must not overlap are recorded as waiting, and judged in the same transaction, under locks taken before. A row that another
 * transaction has locked holds up no other: such a schedule is left to the next round, and one with such a run is judged soon after.
 */
async function recordUnderLocks(deps: RecordIntentDeps, planned: readonly PlannedSchedule[]): Promise<void> {
  const { instanceId } = deps.lease;
  const { free, fires, recorded, judged } = await deps.database.transaction(async (tx) => {
    const locked = new Set((await lockFreeSchedules(tx, planned.map(uidOf))).free);
    const own = planned.filter((one) => locked.has(uidOf(one)));
    const toRecord = firesOf(own);
    return {
      free: own,
      fires: toRecord,
      recorded: await recordIntentsIfLocked(tx, instanceId, own.map(advanceOf), toRecord.map(intentIn), {
        alone: false,
      }),
      judged: await judgeOverlapsNowOrSoon(tx, own.map(uidOf)),
    };
  });
  const inserted = emitRecorded(deps.events, free, fires, recorded);
  emitJudged(deps.events, judged);
  wakeForRecorded(deps.wake, inserted, recorded.effects);
  wakeFor(deps.wake, workOf(judged));
}

function uidOf({ schedule }: PlannedSchedule): string {
  return schedule.uid;
}

function firesOf(planned: readonly PlannedSchedule[]): Fire[] {
  return planned.flatMap(({ schedule, plan }) =>
    plan.fires.map((fire) => ({ schedule, intent: { ...intentOf(schedule.uid, fire), claimed: false } })),
  );
}

/** Answers those that were recorded. */
function emitRecorded(
  events: EventBus,
  planned: readonly PlannedSchedule[],
  fires: readonly Fire[],
  recorded: Recorded,
): Fire[] {
  const fenced = planned.length - recorded.advanced;
  if (fenced > 0) events.emit({ type: 'fireLocks', outcome: 'fenced', count: fenced });
  const inserted = fires.filter(({ intent }) => recorded.inserted(intent.id));
  const fired = inserted.filter(({ intent }) => intent.skipped === null);
  const claimed = fired.filter(({ intent }) => intent.claimed).length;
  const coalesced = fired.reduce((sum, { intent }) => sum + intent.coalesced, 0);
  events.emit({ type: 'intentsRecorded', fires: fired.length, claimed, coalesced });
  const missed = missedOf(inserted);
  if (missed.schedules > 0) events.emit({ type: 'firesMissed', ...missed });
  for (const reason of SKIP_REASONS) {
    const count = inserted.filter(({ intent }) => intent.skipped === reason).length;
    if (count > 0) events.emit({ type: 'runsSkipped', reason, count });
  }
  return inserted;
}

const MAX_NAMED = 10;

function missedOf(recorded: readonly Fire[]): MissedFires {
  const late = recorded.filter(({ intent }) => intent.trigger === 'catchUp' || intent.coalesced > 0);
  const ids = new Set(late.map(({ schedule }) => schedule.id));
  const stoodFor = (fires: readonly Fire[]) => fires.reduce((sum, { intent }) => sum + intent.coalesced, 0);
  const skipped = late.filter(({ intent }) => intent.skipped !== null);
  const fired = late.filter(({ intent }) => intent.skipped === null);
  return {
    schedules: ids.size,
    scheduleIds: [...ids].slice(0, MAX_NAMED),
    caughtUp: fired.filter(({ intent }) => intent.trigger === 'catchUp').length,
    folded: stoodFor(fired),
    skipped: skipped.length + stoodFor(skipped),
  };
}

function intentIn({ intent }: Fire): Intent {
  return intent;
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
  await deps.database.run((db) => setAsideIfLocked(db, deps.lease.instanceId, rows));
  for (const { scheduleId, error, failures, retryAt } of rows) {
    deps.events.emit({ type: 'scheduleSetAside', scheduleId, error, failures, retryAt });
  }
}

function advanceOf({ schedule, plan }: PlannedSchedule): Advance {
  return {
    uid: schedule.uid,
    version: schedule.version,
    lockedAt: schedule.lockedAt,
    nextOccurrenceAt: plan.nextOccurrenceAt,
    nextFireAt: plan.nextFireAt,
    plannedThrough: plan.fires.at(-1)?.scheduledFor ?? null,
    lastFireAt: lastFireOf(plan),
  };
}

function claimedRun(
  schedule: LockedSchedule,
  intent: Intent,
  instanceId: string,
  claimedAt: number,
): ClaimedRun {
  return {
    id: intent.id,
    instanceId,
    scheduledFor: intent.scheduledFor,
    scheduleUid: schedule.uid,
    scheduleVersion: schedule.version,
    scheduleId: schedule.id,
    trigger: intent.trigger,
    lane: schedule.lane,
    priority: schedule.priority,
    dueAt: intent.dueAt,
    attempt: 1,
    failures: 0,
    recoveries: 0,
    ownPayload: null,
    claimedAt,
    firstClaimedAt: claimedAt,
    wasHandedOff: false,
    latenessMs: null,
    recoveredAt: null,
    parentRunId: null,
    hasDependencies: false,
    lookupAfter: null,
    lookups: 0,
    confirm: false,
  };
}
