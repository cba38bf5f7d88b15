/**
 * Guarantees: from the commit on no instance takes a fire-lock, and what is being planned under one is not recorded; while it holds
 *   runs, none is claimed either. Each instance's heartbeat tells it, so that it keeps back what it has claimed already.
 * Transaction: one; the fire-locks are freed in a statement after the one that begins it.
 * If the process dies here: maintenance is in force, or it is not.
 */
import type { Maintenance } from '../core/maintenance.ts';
import type { Database } from '../postgres/database.ts';
import { beginMaintenance, endMaintenance } from '../store/maintenance/maintenance.ts';
import { freeFireLocks } from '../store/schedules/fire-locks.ts';

/** Answers what is in force then; null: nothing was written, since `until` is not in the future. */
export async function startMaintenance(
  database: Database,
  asked: Omit<Maintenance, 'since'>,
): Promise<Maintenance | null> {
  return database.transaction(async (tx) => {
    const begun = await beginMaintenance(tx, asked);
    if (begun) await freeFireLocks(tx);
    return begun;
  });
}

/** What was due meanwhile is planned by the next tick of any instance. */
export async function stopMaintenance(database: Database): Promise<void> {
  await database.run(endMaintenance);
}
