/**
 * Guarantees: a claim that is held is sent once its definition and a slot are there, and held until its outcome is written.
 * Transaction: none of its own.
 * If the process dies here: recovery finds its claims as those of a dead instance.
 */
import type { AttemptSettlement } from '../../core/runs/attempts/settle-attempt.ts';
import type { ClaimedRun } from '../../store/runs/claims/claimed-run.ts';
import { versionKey } from '../../store/schedules/load-handoffs.ts';
import type { Dispatch } from './dispatch-state.ts';
import type { HandoffDefinitions, SendableHandoff } from '../handoff/handoff-definitions.ts';
import type { LaneClaim } from './lane.ts';
import type { AttemptEnd } from './lane-pace.ts';
import type { EndedAttempt } from '../settle/settle-queue.ts';

export function acceptClaims(dispatch: Dispatch, runs: readonly ClaimedRun[]): void {
  const claims = runs.map((run) => dispatch.buffer.put(run));
  // Claimed while the instance was declared dead.
  giveUpForeign(dispatch, claims.filter(isForeignTo(dispatch)));
  admit(dispatch, claims.filter(awaitsDefinition));
}

/** Claimed under an id that the others have declared dead. */
export function isForeignTo({ deps }: Dispatch): (claim: LaneClaim) => boolean {
  const { instanceId } = deps.lease;
  return ({ run }) => run.instanceId !== instanceId;
}

/** Drops unsent claims that were lost: their runs belong to other instances now. */
export function giveUpForeign(dispatch: Dispatch, claims: readonly LaneClaim[]): void {
  if (claims.length === 0) return;
  for (const claim of claims) release(dispatch, claim);
  dispatch.deps.events.emit({ type: 'claimsDropped', count: claims.length });
}

/** Queues claims whose definition is known; the others wait for it. The next pass reads what cannot be read now. */
function admit(dispatch: Dispatch, claims: readonly LaneClaim[]): void {
  const { deps, lanes, loop, accepting } = dispatch;
  if (accepting) for (const claim of claims) claim.handoff = deps.definitions.known(claim.run) ?? null;
  const ready = claims.filter(isDefined);
  lanes.add(ready);
  if (ready.length === claims.length) return;
  if (accepting)
    void defineThese(
      dispatch,
      claims.filter((claim) => !isDefined(claim)),
    ).catch(() => loop.wake());
  else loop.wake();
}

function isDefined({ handoff }: LaneClaim): boolean {
  return handoff !== null;
}

function awaitsDefinition({ state }: LaneClaim): boolean {
  return state === 'awaitsDefinition';
}

/** Fetches missing definitions, then queues the runs that waited for them. */
export async function define(dispatch: Dispatch): Promise<void> {
  await defineThese(
    dispatch,
    dispatch.buffer.inState('awaitsDefinition').filter((claim) => !claim.isBeingDefined),
  );
}

async function defineThese(dispatch: Dispatch, claims: readonly LaneClaim[]): Promise<void> {
  const { deps, lanes } = dispatch;
  if (claims.length === 0) return;
  const found = await loadDefinitions(deps.definitions, claims);
  // Some may have been given up meanwhile.
  const left = claims.filter(awaitsDefinition);
  for (const claim of left) claim.handoff = found.get(versionKey(claim.run)) ?? null;
  lanes.add(left.filter(isDefined));
  for (const claim of left) {
    if (!isDefined(claim)) deps.settler.add(new Ended(dispatch, claim, deps.withoutDefinition(claim.run)));
  }
}

async function loadDefinitions(
  definitions: HandoffDefinitions,
  claims: readonly LaneClaim[],
): Promise<ReadonlyMap<string, SendableHandoff>> {
  for (const claim of claims) claim.isBeingDefined = true;
  try {
    return await definitions.load(claims.map(({ run }) => run));
  } finally {
    for (const claim of claims) claim.isBeingDefined = false;
  }
}

export function send(dispatch: Dispatch, claim: LaneClaim): void {
  const { deps, lanes, aborting } = dispatch;
  const { run, handoff } = claim;
  if (!handoff) return;
  const endedWith = (outcome: AttemptSettlement) => {
    const ended = new Ended(dispatch, claim, outcome);
    lanes.ended(claim, endOf(outcome), outcome.finishedAt - outcome.startedAt);
    return ended;
  };
  void deps.execute({ run, handoff, signal: aborting.signal, endedWith });
}

function endOf({ sent, settlement }: AttemptSettlement): AttemptEnd {
  if (!sent) return 'unsent';
  return settlement.error?.kind === 'timeout' ? 'silent' : 'answered';
}

class Ended implements EndedAttempt {
  readonly #dispatch: Dispatch;
  readonly #claim: LaneClaim;
  readonly outcome: AttemptSettlement;

  constructor(dispatch: Dispatch, claim: LaneClaim, outcome: AttemptSettlement) {
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

/** The claim is no longer held. */
export function release(dispatch: Dispatch, claim: LaneClaim): void {
  const { room, buffer, loop } = dispatch;
  const next = buffer.drop(claim);
  if (room.mayHaveMore(claim.lane)) loop.wake();
  if (next) admit(dispatch, [next]);
  notifyIfIdle(dispatch);
}

export function notifyIfIdle({ book, onIdle }: Dispatch): void {
  if (book.all.claims === 0) for (const resolve of onIdle.splice(0)) resolve();
}
