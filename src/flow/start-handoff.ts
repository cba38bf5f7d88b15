/**
 * Guarantees: where it matters, nothing is sent before it is durable that the attempt began, under a claim that still holds.
 * Transaction: one statement for all that begin at the moment; an answer that does not come counts as no.
 * If the process dies here: at most once, the run is `unknown` or its target is asked; at least once, it is sent again.
 */
import type { Delivery } from '../core/schedule.ts';
import type { DatabaseClock } from '../runtime/database-clock.ts';
import type { EventBus } from '../runtime/event-bus.ts';
import { type Claim, type ClaimedRun, claimOf } from '../store/claims.ts';
import type { Database } from '../store/database.ts';
import { startHandoffsIfClaimed } from '../store/handoff-starts.ts';

export interface HandoffStarter {
  /** False: the claim does not hold any more, or nobody knows; nothing may be sent. */
  start(run: ClaimedRun): Promise<boolean>;
}

export interface HandoffStarterDeps {
  database: Database;
  events: EventBus;
}

/** A claim that has waited for longer may have been taken away: its schedule deleted, its instance thought dead. */
const FRESH_MS = 1_000;

/** At least once, a fresh claim is sent as it is: that is what saves the round trip. */
export function mustBeStarted(run: ClaimedRun, delivery: Delivery, databaseClock: DatabaseClock): boolean {
  return run.confirm || delivery === 'atMostOnce' || databaseClock.now() - run.claimedAt > FRESH_MS;
}

interface Waiting {
  claim: Claim;
  resolve: (started: boolean) => void;
}

export function createHandoffStarter({ database, events }: HandoffStarterDeps): HandoffStarter {
  let waiting: Waiting[] = [];
  let busy = false;

  async function startAll(): Promise<void> {
    busy = true;
    while (waiting.length > 0) {
      const batch = waiting;
      waiting = [];
      const started = await startBatch(batch.map(({ claim }) => claim));
      for (const { claim, resolve } of batch) resolve(started.has(claim.runId));
    }
    busy = false;
  }

  async function startBatch(claims: readonly Claim[]): Promise<ReadonlySet<string>> {
    try {
      return await database.run((db) => startHandoffsIfClaimed(db, claims));
    } catch (error) {
      // It may have been committed unseen. Nothing is sent, so the settlement, under the same guard, can say so.
      events.emit({ type: 'handoffsNotStarted', count: claims.length, error });
      return new Set();
    }
  }

  return {
    start: (run) =>
      new Promise((resolve) => {
        waiting.push({ claim: claimOf(run), resolve });
        if (!busy) void startAll();
      }),
  };
}
