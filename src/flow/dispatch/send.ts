import type { AttemptSettlement } from '../../core/runs/attempts/settle-attempt.ts';
import type { ClaimedRun } from '../../store/runs/claims/claimed-run.ts';
import type { SendableHandoff } from '../handoff/handoff-definitions.ts';
import type { ClaimToExecute, Dispatch, DispatchDeps } from './dispatch-state.ts';
import type { LaneClaim } from './lane.ts';
import type { AttemptEnd } from './lane-pace.ts';
import { EndedClaim } from './claims.ts';

export function maySend({ lease, installation, shortage }: DispatchDeps): boolean {
  return lease.isValid() && !installation.holdsRuns() && shortage.mostClaims() > 0;
}

/** Also many at once: it does not try out again whether it can. */
export function maySendMany(deps: DispatchDeps): boolean {
  return maySend(deps) && deps.shortage.mostClaims() === Infinity;
}

/** Begins the attempt of a claim that has its definition and a slot. */
export function send(dispatch: Dispatch, claim: LaneClaim): void {
  if (claim.handoff) void dispatch.deps.execute(new SentClaim(dispatch, claim, claim.handoff));
}

class SentClaim implements ClaimToExecute {
  readonly #dispatch: Dispatch;
  readonly #claim: LaneClaim;
  readonly run: ClaimedRun;
  readonly handoff: SendableHandoff;
  readonly signal: AbortSignal;

  constructor(dispatch: Dispatch, claim: LaneClaim, handoff: SendableHandoff) {
    this.#dispatch = dispatch;
    this.#claim = claim;
    this.run = claim.run;
    this.handoff = handoff;
    this.signal = dispatch.aborting.signal;
  }

  ended(outcome: AttemptSettlement): EndedClaim {
    const ended = new EndedClaim(this.#dispatch, this.#claim, outcome);
    this.#dispatch.lanes.ended(this.#claim, endOf(outcome), outcome.finishedAt - outcome.startedAt);
    return ended;
  }
}

function endOf({ sent, settlement }: AttemptSettlement): AttemptEnd {
  if (!sent) return 'unsent';
  return settlement.error?.kind === 'timeout' ? 'timedOut' : 'answered';
}
