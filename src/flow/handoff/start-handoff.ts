/**
 * Guarantees: where it matters, nothing is sent before it is durable that the attempt began, under a claim that still holds.
 * Transaction: one statement for all that begin at the moment; an answer that does not come counts as no.
 * If the process dies here: at most once, the run is `unknown` or its target is asked; at least once, it is sent again.
 */
import type { Delivery } from '../../core/schedules/schedule.ts';
import { batchCalls } from '../../runtime/loop/batched-calls.ts';
import type { DatabaseClock } from '../../runtime/database-clock.ts';
import type { EventBus } from '../../runtime/event-bus.ts';
import type { Claim } from '../../core/runs/run-record.ts';
import type { ClaimedRun } from '../../store/runs/claims/claimed-run.ts';
import { claimOf, startHandoffsIfClaimed } from '../../store/runs/claims/held-claims.ts';
import type { Database } from '../../postgres/database.ts';

export interface HandoffStarter {
  /** False: the claim is no longer valid, or that is unknown; nothing may be sent. */
  start(run: ClaimedRun): Promise<boolean>;
}

interface HandoffStarterDeps {
  database: Database;
  events: EventBus;
}

/** A claim that has waited for longer may have been taken away: its schedule deleted, its instance thought dead. */
const FRESH_MS = 1_000;

/** At least once, a fresh claim is sent without this statement, which saves a round trip. */
export function mustBeStarted(run: ClaimedRun, delivery: Delivery, databaseClock: DatabaseClock): boolean {
  return run.confirm || delivery === 'atMostOnce' || databaseClock.now() - run.claimedAt > FRESH_MS;
}

export function createHandoffStarter({ database, events }: HandoffStarterDeps): HandoffStarter {
  async function startBatch(claims: readonly Claim[]): Promise<boolean[]> {
    try {
      const started = await database.run((db) => startHandoffsIfClaimed(db, claims));
      return claims.map(({ runId }) => started.has(runId));
    } catch (error) {
      // It may have been committed unseen. Nothing is sent, so the settlement, under the same guard, can say so.
      events.emit({ type: 'handoffsNotStarted', count: claims.length, error });
      return claims.map(() => false);
    }
  }

  const start = batchCalls({ work: startBatch });
  return { start: (run) => start(claimOf(run)) };
}
