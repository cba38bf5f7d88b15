/**
 * Guarantees: a claim that is not sent goes back to its row, for any instance with a slot; rows that others have locked are passed over.
 * Transaction: one statement for all of them.
 * If the process dies here: recovery finds the claims that were not handed back as those of a dead instance.
 */
import { setTimeout } from 'node:timers/promises';
import { claimOf, returnClaimsIfMine } from '../../store/runs/claims/held-claims.ts';
import type { Dispatch } from './dispatch-state.ts';
import type { LaneClaim } from './lane.ts';
import { giveUpForeign, isForeignTo, release } from './send-claims.ts';

/** How long a claim waits for a slot. Far less than the age at which a claim counts as lost. */
const MAX_WAIT_MS = 10_000;
/** How long a lane keeps claims that it cannot use while its target answers nothing. */
const MAX_WAIT_OF_SURPLUS_MS = 5_000;
const RETRY_MS = 200;

/** Attempts under way go on, and are settled if possible. */
export function dropForeign(dispatch: Dispatch): void {
  giveUpForeign(dispatch, takeUnsent(dispatch, isForeignTo(dispatch)));
}

/** Claims that wait for others come first, so that none of them takes the place of one that is given up. */
function takeUnsent({ buffer, lanes }: Dispatch, filter: (claim: LaneClaim) => boolean): LaneClaim[] {
  const waiting = lanes.takeOut(filter);
  const [later, noDefinition] = (['awaitsEarlier', 'awaitsDefinition'] as const).map((state) =>
    buffer.inState(state),
  );
  return [...(later ?? []).filter(filter), ...waiting, ...(noDefinition ?? []).filter(filter)];
}

/** Returns the claims that wait for a slot, since maintenance holds runs: their rows must not count as claimed meanwhile. */
export async function returnWaiting(dispatch: Dispatch): Promise<void> {
  await returnFromLanes(dispatch, () => true);
}

/** Returns claims that waited too long for a slot: any instance with a slot may have them, this one later too. */
export async function returnStale(dispatch: Dispatch): Promise<boolean> {
  const { deps, book, room } = dispatch;
  if (book.all.waiting === 0) return false;
  const now = deps.databaseClock.now();
  const surplus = new Set<LaneClaim>();
  for (const lane of book.lanes()) for (const claim of room.surplusOf(lane)) surplus.add(claim);
  return returnFromLanes(dispatch, (claim) => {
    const maxWaitMs = surplus.has(claim) ? MAX_WAIT_OF_SURPLUS_MS : MAX_WAIT_MS;
    return claim.run.claimedAt < now - maxWaitMs;
  });
}

/** Answers whether any was returned. */
async function returnFromLanes(dispatch: Dispatch, filter: (claim: LaneClaim) => boolean): Promise<boolean> {
  const { lanes } = dispatch;
  const unsent = lanes.takeOut(filter);
  if (unsent.length === 0) return false;
  for (const claim of unsent) claim.state = 'returning';
  try {
    const passedOver = await handBack(dispatch, unsent);
    lanes.add(passedOver);
    return passedOver.length < unsent.length;
  } catch (error) {
    // It is unknown whether they were handed back: they are confirmed before they are sent.
    for (const claim of unsent) claim.run = { ...claim.run, confirm: true };
    lanes.add(unsent.filter(({ state }) => state === 'returning'));
    throw error;
  }
}

/** A claim that is not handed back stays with an instance that is gone, so this tries as long as there is time. */
export async function handBackAll(dispatch: Dispatch): Promise<void> {
  const { events } = dispatch.deps;
  const { signal } = dispatch.aborting;
  const all = () => true;
  for (let unsent = takeUnsent(dispatch, all); unsent.length > 0 && !signal.aborted;) {
    const left = await handBack(dispatch, unsent).catch((error: unknown) => {
      if (!signal.aborted) events.emit({ type: 'loopFailed', loop: 'hand back', error, retryInMs: RETRY_MS });
      return unsent;
    });
    if (left.length > 0) await setTimeout(RETRY_MS);
    unsent = [...new Set([...left, ...takeUnsent(dispatch, all)])];
  }
}

/** Answers the claims whose rows other transactions have locked at this moment: they still belong to this instance. */
async function handBack(dispatch: Dispatch, claims: readonly LaneClaim[]): Promise<LaneClaim[]> {
  const { database, events } = dispatch.deps;
  const claimed = claims.map(({ run }) => claimOf(run));
  const { returned, held } = await database.run((db) => returnClaimsIfMine(db, claimed));
  for (const claim of claims) if (!held.has(claim.run.id)) release(dispatch, claim);
  events.emit({ type: 'runsReturned', count: returned, stopping: !dispatch.accepting });
  return claims.filter(({ run }) => held.has(run.id));
}
