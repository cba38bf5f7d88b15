/**
 * Guarantees: a run whose claim the database refuses is left out for a while, visibly, and stands before no other.
 * Transaction: one for each part of the runs in question; it is always rolled back.
 * If the process dies here: nothing was written; other processes find the same runs out.
 */
import { type Rests, createRests } from '../../runtime/loop/rests.ts';
import type { Executor } from '../../postgres/executor.ts';
import { batchFaultOf } from '../../postgres/errors.ts';
import { seeTo } from '../../postgres/see-to.ts';
import { tryToClaim } from '../../store/runs/claims/claims.ts';
import type { DispatchDeps } from './dispatch-state.ts';

export function createRefusedClaims({ clock, events, name }: Pick<DispatchDeps, 'clock' | 'events' | 'name'>): Rests {
  return createRests({ clock, events, loop: name });
}

type Deps = Pick<DispatchDeps, 'database' | 'events' | 'lease'>;

/**
 * Claims by one statement. If the database refuses it, looks for the runs that are at fault among those that the statement takes, and
 * leaves these out from then on: the answer is null, and the next pass claims the others. @throws what no run is at fault for
 */
export async function claimUnlessRefused<T>(
  deps: Deps,
  refused: Rests,
  { claim, find }: { claim: (db: Executor) => Promise<T>; find: (db: Executor) => Promise<string[]> },
): Promise<T | null> {
  try {
    return await deps.database.run(claim);
  } catch (error) {
    if (batchFaultOf(error) === null) throw error;
    const before = refused.keys().length;
    const ids = await deps.database.run(find);
    await setRefusedAside(deps, refused, ids);
    if (refused.keys().length === before) throw error;
    return null;
  }
}

async function setRefusedAside(deps: Deps, refused: Rests, ids: readonly string[]): Promise<void> {
  const { database, events, lease } = deps;
  await seeTo(refused, ids, {
    keyOf: (runId) => runId,
    work: (some) =>
      database
        .transaction(async (tx) => {
          await tryToClaim(tx, lease.instanceId, some);
          throw new OnlyTried();
        })
        .catch((error: unknown) => {
          if (!(error instanceof OnlyTried)) throw error;
        }),
    refused: (runId, error) => events.emit({ type: 'claimRefused', runId, error }),
  });
}

/** Rolls the transaction back. */
class OnlyTried extends Error {
  override readonly name = 'OnlyTried';
}
