/**
 * Guarantees: a run whose claim is in vain is found by its row and driven on, or ends in a status that says why; whoever heard of what.
 * Transaction: what is found is taken over in one statement, under the claims it was found with.
 * If the process dies here: the next pass, here or elsewhere, finds the same rows.
 */
import type { LostBecause } from '../core/events.ts';
import type { Clock } from '../runtime/clock.ts';
import type { EventBus } from '../runtime/event-bus.ts';
import type { Lease } from '../runtime/lease.ts';
import { type Loop, createLoop } from '../runtime/loop.ts';
import type { Database } from '../store/database.ts';
import {
  type LostClaim,
  type RecoveryPolicy,
  findClaimsOf,
  findExpiredClaims,
  findOrphans,
  takeOverIfStillClaimed,
} from '../store/recoveries.ts';
import { createOwnClaims } from './own-claims.ts';

export interface RecoveryDeps extends RecoveryPolicy {
  database: Database;
  clock: Clock;
  events: EventBus;
  lease: Lease;
  intervalSeconds: number;
  /** A claim older than its attempt may take by this is in vain, whatever its instance says. */
  lostAfterSeconds: number;
  /** Whether this process knows of a claim that a row says it has. */
  holds: (runId: string, attempt: number) => boolean;
  /** There are runs to claim. */
  wakeDispatch: () => void;
}

/** Driven on per pass and instance: with the lanes' shares, what keeps the runs of a dead instance from stampeding their targets. */
const BATCH = 500;
const NEXT_BATCH_MS = 1_000;

export function createRecovery(deps: RecoveryDeps): Loop {
  const { database, clock, events, lease } = deps;
  const own = createOwnClaims(clock, deps.holds);

  async function recover(): Promise<number> {
    const began = clock.monotonic();
    const { instanceId } = lease;
    const orphans = await database.run((db) => findOrphans(db, BATCH));
    await takeOver('orphaned', orphans);
    const forgotten = own.forgotten(await database.run((db) => findClaimsOf(db, instanceId)));
    await takeOver('forgotten', forgotten.slice(0, BATCH));
    const expired = await database.run((db) => findExpiredClaims(db, deps.lostAfterSeconds, BATCH));
    await takeOver('expired', expired);
    events.emit({ type: 'recoveryFinished', durationMs: clock.monotonic() - began });
    const more = orphans.length === BATCH || forgotten.length > BATCH || expired.length === BATCH;
    return more ? NEXT_BATCH_MS : deps.intervalSeconds * 1000;
  }

  async function takeOver(found: LostBecause, claims: readonly LostClaim[]): Promise<void> {
    if (claims.length === 0) return;
    const runs = await database.run((db) => takeOverIfStillClaimed(db, claims, deps));
    if (runs.length === 0) return;
    events.emit({ type: 'runsTakenOver', found, runs });
    deps.wakeDispatch();
  }

  return createLoop({ name: 'recovery', clock, body: recover, events });
}
