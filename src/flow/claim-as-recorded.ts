import { newlyClaimedRun } from '../store/runs/claims/claimed-run.ts';
import type { Recorded } from '../store/runs/intents/intent.ts';
import type { Dispatcher } from './dispatch/dispatch.ts';
import type { PlannedSchedule } from './plan.ts';
import { type Fire, firesOf, isObservedFire } from './recorded-fires.ts';

export interface RoomDeps {
  dispatcher: Pick<Dispatcher, 'reserve' | 'unreserve' | 'accept'>;
}

/** Runs are recorded with the claims that this instance has slots for, and only those claims are sent. */
export function firesWithRoom({ dispatcher }: RoomDeps, planned: readonly PlannedSchedule[]): Fire[] {
  const fires = firesOf(planned);
  for (const fire of fires)
    fire.intent.claimed = mayBeClaimed(fire) && dispatcher.reserve(fire.schedule.lane);
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
