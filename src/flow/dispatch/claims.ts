/**
 * Guarantees: a claim is kept until its outcome is written. One that is not sent goes back to its row, for any instance with a slot; rows
 *   that others have locked are passed over.
 * Transaction: one statement for all claims that go back.
 * If the process dies here: recovery finds its claims as those of a dead instance.
 */
import { setTimeout } from 'node:timers/promises';
import type { AttemptSettlement } from '../../core/runs/attempts/settle-attempt.ts';
import { LineMember } from '../../runtime/loop/line.ts';
import type { ClaimedRun } from '../../store/runs/claims/claimed-run.ts';
import { claimOf, returnClaimsIfMine } from '../../store/runs/claims/held-claims.ts';
import { editionKey } from '../../store/schedules/schedule-versions.ts';
import { withoutDefinition } from '../handoff/settlements.ts';
import type { EndedAttempt } from '../settle-queue.ts';
import type { Dispatch } from './dispatch-state.ts';
import type { ClaimState, LaneClaim } from './lane.ts';

/** How long a claim waits for a slot. Far less than the age at which a claim counts as lost. */
const MAX_WAIT_MS = 10_000;
/** How long a lane keeps claims that it cannot use while its target answers nothing. */
const MAX_WAIT_OF_SURPLUS_MS = 5_000;
const RETRY_MS = 200;

export function acceptClaims(dispatch: Dispatch, runs: readonly ClaimedRun[]): void {
  const claims = runs.map((run) => dispatch.buffer.put(run));
  // Claimed while the instance was declared dead.
  dropLost(dispatch, claims.filter(isLost(dispatch)));
  enqueue(dispatch, claims.filter(awaitsDefinition));
}

/** Queues claims whose definition is known; the others wait for it. The next pass reads what cannot be read now. */
function enqueue(dispatch: Dispatch, claims: readonly LaneClaim[]): void {
  const { deps, lanes, loop, accepting } = dispatch;
  if (accepting) for (const claim of claims) claim.handoff = deps.definitions.known(claim.run) ?? null;
  const ready = claims.filter(hasDefinition);
  lanes.add(ready);
  if (ready.length === claims.length) return;
  const others = claims.filter((claim) => !hasDefinition(claim));
  if (accepting) void loadDefinitions(dispatch, others).catch(() => loop.wake());
  else loop.wake();
}

function hasDefinition({ handoff }: LaneClaim): boolean {
  return handoff !== null;
}

function awaitsDefinition({ state }: LaneClaim): boolean {
  return state === 'awaitsDefinition';
}

/** Fetches missing definitions, then queues the runs that waited for them. */
export async function loadMissingDefinitions(dispatch: Dispatch): Promise<void> {
  const claims = dispatch.buffer.inState('awaitsDefinition');
  await loadDefinitions(
    dispatch,
    claims.filter((claim) => !claim.isLoadingDefinition),
  );
}

async function loadDefinitions(dispatch: Dispatch, claims: readonly LaneClaim[]): Promise<void> {
  const { deps, lanes } = dispatch;
  if (claims.length === 0) return;
  for (const claim of claims) claim.isLoadingDefinition = true;
  const found = await deps.definitions
    .load(claims.map(({ run }) => run))
    .finally(() => claims.forEach((claim) => (claim.isLoadingDefinition = false)));
  // Some may have been given up meanwhile.
  const left = claims.filter(awaitsDefinition);
  for (const claim of left) claim.handoff = found.get(editionKey(claim.run)) ?? null;
  lanes.add(left.filter(hasDefinition));
  for (const claim of left) {
    if (hasDefinition(claim)) continue;
    const outcome = withoutDefinition(deps.databaseClock, claim.run);
    deps.settler.add(new EndedClaim(dispatch, claim, outcome));
  }
}

/** Kept until its outcome is written. */
export class EndedClaim extends LineMember<EndedAttempt> implements EndedAttempt {
  readonly #dispatch: Dispatch;
  readonly #claim: LaneClaim;
  readonly outcome: AttemptSettlement;

  constructor(dispatch: Dispatch, claim: LaneClaim, outcome: AttemptSettlement) {
    super();
    this.#dispatch = dispatch;
    this.#claim = claim;
    this.outcome = outcome;
    claim.state = 'settling';
  }

  get run(): ClaimedRun {
    return this.#claim.run;
  }

  onSettled(): void {
    release(this.#dispatch, this.#claim);
  }
}

/** The claim is over. */
function release(dispatch: Dispatch, claim: LaneClaim): void {
  const { room, buffer, loop } = dispatch;
  const next = buffer.drop(claim);
  if (room.mayHaveMore(claim.lane)) loop.wake();
  if (next) enqueue(dispatch, [next]);
  notifyIfIdle(dispatch);
}

export function notifyIfIdle({ book, onIdle }: Dispatch): void {
  if (book.all.claims === 0) for (const resolve of onIdle.splice(0)) resolve();
}

/** Drops unsent claims of an id that was declared dead. Attempts under way go on, and are settled if possible. */
export function dropLostClaims(dispatch: Dispatch): void {
  dropLost(dispatch, removeUnsent(dispatch, isLost(dispatch)));
}

/** Claimed under an id that the others have declared dead: its run belongs to other instances now. */
function isLost({ deps }: Dispatch): (claim: LaneClaim) => boolean {
  const { instanceId } = deps.lease;
  return ({ run }) => run.instanceId !== instanceId;
}

function dropLost(dispatch: Dispatch, claims: readonly LaneClaim[]): void {
  if (claims.length === 0) return;
  for (const claim of claims) release(dispatch, claim);
  dispatch.deps.events.emit({ type: 'claimsDropped', count: claims.length });
}

/** Claims that wait for others come first, so that none of them takes the place of one that is given up. */
function removeUnsent({ buffer, lanes }: Dispatch, filter: (claim: LaneClaim) => boolean): LaneClaim[] {
  const inState = (state: ClaimState) => buffer.inState(state).filter(filter);
  return [...inState('awaitsEarlier'), ...lanes.removeWaiting(filter), ...inState('awaitsDefinition')];
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
  const unsent = lanes.removeWaiting(filter);
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

/** A claim that is not handed back stays with an instance that is gone, so this tries as long as there is time, and lets go of it then. */
export async function handBackAll(dispatch: Dispatch): Promise<void> {
  const { events } = dispatch.deps;
  const { signal } = dispatch.aborting;
  const all = () => true;
  let unsent = removeUnsent(dispatch, all);
  while (unsent.length > 0 && !signal.aborted) {
    const left = await handBack(dispatch, unsent).catch((error: unknown) => {
      if (!signal.aborted) events.emit({ type: 'loopFailed', loop: 'hand back', error, retryInMs: RETRY_MS });
      return unsent;
    });
    if (left.length > 0) await setTimeout(RETRY_MS);
    unsent = [...new Set([...left, ...removeUnsent(dispatch, all)])];
  }
  for (const claim of unsent) release(dispatch, claim);
}

/** Answers the claims whose rows other transactions have locked at this moment: they still belong to this instance. */
async function handBack(dispatch: Dispatch, claims: readonly LaneClaim[]): Promise<LaneClaim[]> {
  const { database, events } = dispatch.deps;
  const claimed = claims.map(({ run }) => claimOf(run));
  const { returned, locked } = await database.run((db) => returnClaimsIfMine(db, claimed));
  for (const claim of claims) if (!locked.has(claim.run.id)) release(dispatch, claim);
  events.emit({ type: 'runsReturned', count: returned, stopping: !dispatch.accepting });
  return claims.filter(({ run }) => locked.has(run.id));
}
