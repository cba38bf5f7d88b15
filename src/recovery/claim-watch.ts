/**
 * Guarantees: a claim counts as lost only after this process itself has found it suspect for a while, by a clock that cannot step.
 * Transaction: none; this is memory beside what the rows say.
 * If the process dies here: the instance that looks next begins to watch anew.
 */
import type { Clock } from '../runtime/clock.ts';
import type { LostClaim } from '../store/runs/claims/take-over-lost-claims.ts';

interface ClaimWatch {
  /** The suspect claims that were suspect at every look for at least that long. */
  seenFor(claims: readonly LostClaim[], ms: number): LostClaim[];
}

export function createClaimWatch(clock: Clock): ClaimWatch {
  /** Since when, in monotonic ms. */
  let since = new Map<string, number>();

  return {
    seenFor: (claims, ms) => {
      const now = clock.monotonic();
      since = new Map(claims.map((claim) => [keyOf(claim), since.get(keyOf(claim)) ?? now]));
      return claims.filter((claim) => now - (since.get(keyOf(claim)) ?? now) > ms);
    },
  };
}

/** A later attempt is another claim to watch. */
function keyOf({ runId, instanceId, attempt, handoffStartedAt }: LostClaim): string {
  return `${runId}/${instanceId}/${attempt}/${handoffStartedAt ?? ''}`;
}
