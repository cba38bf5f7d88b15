import type { MissedFires } from '../core/events.ts';
import { lastFireOf, SKIP_REASONS } from '../core/time/plan-due.ts';
import type { ConfirmedCommits } from '../runtime/confirmed-commits.ts';
import type { EventBus } from '../runtime/event-bus.ts';
import { type Wake, wakeFor } from '../runtime/loop/wake.ts';
import { isObservedAt } from '../core/schedules/schedule.ts';
import { queueOfLane } from '../core/runs/run-lane.ts';
import { type Advance, type Intent, type Recorded, intentOf } from '../store/runs/intents/intent.ts';
import type { LockedSchedule } from '../store/schedules/locked-schedule.ts';
import type { PlannedSchedule } from './plan.ts';
import { newlyClaimedRun } from '../store/runs/claims/claimed-run.ts';
import type { Dispatcher } from './dispatch/dispatch.ts';

export interface Fire {
  schedule: LockedSchedule;
  intent: Intent;
}

function firesOf(planned: readonly PlannedSchedule[]): Fire[] {
  return planned.flatMap(({ schedule, plan }) =>
    plan.fires.map((fire) => ({ schedule, intent: { ...intentOf(schedule.uid, fire), claimed: false } })),
  );
}

/** Nothing is to be claimed or sent. */
function isObservedFire({ schedule, intent }: Fire): boolean {
  return isObservedAt(schedule.observe, intent.scheduledFor);
}

export function intentIn({ intent }: Fire): Intent {
  return intent;
}

export function advanceOf({ schedule, plan }: PlannedSchedule): Advance {
  return {
    uid: schedule.uid,
    version: schedule.version,
    lockedAt: schedule.lockedAt,
    nextOccurrenceAt: plan.nextOccurrenceAt,
    nextFireAt: plan.nextFireAt,
    plannedThrough: plan.fires.at(-1)?.scheduledFor ?? null,
    lastFireAt: lastFireOf(plan),
    isBounded: schedule.isBounded || schedule.expiresAfterSeconds !== null,
    observes: schedule.observe !== null,
  };
}

export function uidOf({ schedule }: PlannedSchedule): string {
  return schedule.uid;
}

/** Called after the commit. Answers those that were recorded. */
export function emitRecorded(
  { events, commits }: { events: EventBus; commits: Pick<ConfirmedCommits, 'note'> },
  planned: readonly PlannedSchedule[],
  fires: readonly Fire[],
  recorded: Recorded,
): Fire[] {
  const fenced = planned.length - recorded.advanced;
  if (fenced > 0) events.emit({ type: 'fireLocks', outcome: 'fenced', count: fenced });
  const inserted = fires.filter(({ intent }) => recorded.inserted(intent.id));
  const fired = inserted.filter(({ intent }) => intent.skipped === null);
  const [first] = fired;
  if (first) commits.note({ runId: first.intent.id, kind: 'recorded', at: recorded.claimedAt });
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

/** Wakes loops for the runs that were inserted, and that this instance does not send itself. */
export function wakeForRecorded(wake: Wake, inserted: readonly Fire[], { waits, effects }: Recorded): void {
  const open = inserted.filter((fire) => !fire.intent.claimed && fire.intent.skipped === null && !isObservedFire(fire));
  const started = open.filter(({ intent }) => !waits(intent.id));
  const pending = started.filter(({ schedule }) => schedule.limitId === null);
  const toPull = pending.filter(({ schedule }) => queueOfLane(schedule.lane) !== null);
  wakeFor(wake, {
    effects,
    toClaim: pending.length - toPull.length,
    toPull: toPull.length > 0,
    toAdmit: pending.length < started.length,
  });
}

export interface RoomDeps {
  dispatcher: Pick<Dispatcher, 'reserve' | 'unreserve' | 'accept'>;
}

/** Runs are recorded with the claims that this instance has slots for, and only those claims are sent. */
export function firesWithRoom({ dispatcher }: RoomDeps, planned: readonly PlannedSchedule[]): Fire[] {
  const fires = firesOf(planned);
  for (const fire of fires) fire.intent.claimed = mayBeClaimed(fire) && dispatcher.reserve(fire.schedule.lane);
  return fires;
}

/** Not where it is skipped or observed, nor where it has to wait for a place of its limit. */
function mayBeClaimed(fire: Fire): boolean {
  return fire.intent.skipped === null && fire.schedule.limitId === null && !isObservedFire(fire);
}

export function giveUpRoom({ dispatcher }: RoomDeps, fires: readonly Fire[]): void {
  dispatcher.unreserve(fires.filter(isClaimed).map(({ schedule }) => schedule.lane));
}

function isClaimed({ intent }: Fire): boolean {
  return intent.claimed;
}

/** Sends the runs that were recorded with a claim; the others have none. */
export function sendClaimed(
  { dispatcher }: RoomDeps,
  fires: readonly Fire[],
  instanceId: string,
  recorded: Recorded,
): void {
  const hasClaim = ({ intent: { id, claimed } }: Fire) =>
    claimed && recorded.inserted(id) && !recorded.waits(id) && !recorded.expired(id);
  const others = fires.filter((fire) => !hasClaim(fire));
  giveUpRoom({ dispatcher }, others);
  for (const { intent } of others) intent.claimed = false;
  dispatcher.accept(
    fires
      .filter(isClaimed)
      .map(({ schedule, intent }) => newlyClaimedRun(schedule, intent, instanceId, recorded.claimedAt)),
  );
}
