/**
 * Guarantees: a fire's intent is durable before anything is sent, and the cursor moves on only together with it.
 * Transaction: one statement for the batch, guarded by lock, lock time and version; a lost lock writes nothing (`fenced`).
 * If the process dies here: either nothing was written, or the runs are there to be found, some of them claimed by the dead.
 */
import type { EventBus } from '../runtime/event-bus.ts';
import type { Lease } from '../runtime/lease.ts';
import type { ClaimedRun } from '../store/claims.ts';
import type { Database } from '../store/database.ts';
import { type LockedSchedule, setAsideIfLocked } from '../store/fire-locks.ts';
import { type Advance, type Intent, intentOf, recordIntentsIfLocked } from '../store/intents.ts';
import type { Dispatcher } from './dispatch.ts';
import type { Planned, PlannedSchedule, UnplannableSchedule } from './plan.ts';

export interface RecordIntentDeps {
  database: Database;
  events: EventBus;
  lease: Lease;
  dispatcher: Pick<Dispatcher, 'reserve' | 'unreserve' | 'accept' | 'wake'>;
}

export async function recordIntents(
  deps: RecordIntentDeps,
  { planned, unplannable }: Planned,
  now: number,
): Promise<void> {
  if (unplannable.length > 0) await setAside(deps, unplannable, now);
  if (planned.length > 0) await recordPlanned(deps, planned);
}

async function recordPlanned(deps: RecordIntentDeps, planned: readonly PlannedSchedule[]): Promise<void> {
  const { database, events, dispatcher } = deps;
  // What it reserves and records is this id's; another one meanwhile, and the guard of the statement sees to it.
  const { instanceId } = deps.lease;
  const sorted = [...planned].sort((a, b) => (a.schedule.uid < b.schedule.uid ? -1 : 1));
  const fires = sorted.flatMap(({ schedule, plan }) =>
    plan.fires.map((fire) => ({
      schedule,
      intent: { ...intentOf(schedule.uid, fire), claimed: dispatcher.reserve(schedule.lane) },
    })),
  );
  const reserved = fires.filter(({ intent }) => intent.claimed);
  try {
    const recorded = await database.run((db) =>
      recordIntentsIfLocked(
        db,
        instanceId,
        sorted.map(advanceOf),
        fires.map(({ intent }) => intent),
      ),
    );
    const fenced = planned.length - recorded.advanced;
    if (fenced > 0) events.emit({ type: 'fireLocks', outcome: 'fenced', count: fenced });
    const inserted = fires.filter(({ intent }) => recorded.inserted.has(intent.id));
    const mine = inserted.filter(({ intent }) => intent.claimed);
    const notMine = reserved.filter(({ intent }) => !recorded.inserted.has(intent.id));
    dispatcher.unreserve(notMine.map(({ schedule }) => schedule.lane));
    dispatcher.accept(
      mine.map(({ schedule, intent }) => claimedRun(schedule, intent, instanceId, recorded.claimedAt)),
    );
    if (inserted.length > mine.length) dispatcher.wake();
    const coalesced = inserted.reduce((sum, { intent }) => sum + intent.coalesced, 0);
    events.emit({ type: 'intentsRecorded', fires: inserted.length, claimed: mine.length, coalesced });
  } catch (error) {
    dispatcher.unreserve(reserved.map(({ schedule }) => schedule.lane));
    throw error;
  }
}

const FIRST_RETRY_MS = 5_000;
const LONGEST_RETRY_MS = 15 * 60_000;

async function setAside(
  deps: RecordIntentDeps,
  unplannable: readonly UnplannableSchedule[],
  now: number,
): Promise<void> {
  const rows = unplannable.map(({ schedule, error }) => {
    const failures = schedule.planFailures + 1;
    const wait = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(failures - 1, 20));
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
    lastFireAt: plan.fires.at(-1)?.scheduledFor ?? null,
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
    dueAt: intent.dueAt,
    attempt: 1,
    failures: 0,
    recoveries: 0,
    ownPayload: null,
    claimedAt,
    latenessMs: null,
    recoveredAt: null,
    inDoubtUntil: null,
    lookups: 0,
    confirm: false,
  };
}
