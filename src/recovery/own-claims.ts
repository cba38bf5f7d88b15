/**
 * Guarantees: a claim whose statement was never answered, as in an outage, is not believed to have done nothing.
 * Transaction: none; this is memory beside what the rows say.
 * If the process dies here: its claims are those of an instance that is no more.
 */
import type { Clock } from '../runtime/clock.ts';
import { STATEMENT_LIMIT_MS } from '../store/database.ts';
import type { LostClaim } from '../store/recoveries.ts';

/** Claims that rows say this process has, and how long it has not known of them. */
export interface OwnClaims {
  /** Those of `claimed` that it has known nothing of for longer than a statement may take: the answer will not come any more. */
  forgotten(claimed: readonly LostClaim[]): LostClaim[];
}

export function createOwnClaims(clock: Clock, holds: (runId: string, attempt: number) => boolean): OwnClaims {
  /** By run and attempt: since when (monotonic ms). */
  let unknownSince = new Map<string, number>();

  return {
    forgotten: (claimed) => {
      const now = clock.monotonic();
      const unknown = claimed.filter(({ runId, attempt }) => !holds(runId, attempt));
      unknownSince = new Map(unknown.map((claim) => [keyOf(claim), unknownSince.get(keyOf(claim)) ?? now]));
      return unknown.filter((claim) => now - (unknownSince.get(keyOf(claim)) ?? now) > STATEMENT_LIMIT_MS);
    },
  };
}

function keyOf({ runId, instanceId, attempt }: LostClaim): string {
  return `${runId}/${instanceId}/${attempt}`;
}
