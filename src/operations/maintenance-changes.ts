/**
 * Guarantees: from the commit on no instance takes a fire-lock, and what is being planned under one is not recorded; while it holds
 *   runs, none is claimed either. Each instance's heartbeat tells it, so that it keeps back what it has claimed already.
 * Transaction: one; the fire-locks are freed in a statement after the one that begins it.
 * If the process dies here: maintenance is in force, or it is not.
 */
import { isDeepStrictEqual } from 'node:util';
import { isoInstant } from '../core/instant.ts';
import type { Maintenance } from '../core/maintenance.ts';
import type { Database } from '../postgres/database.ts';
import type { Auditor } from '../store/audit/record-audit.ts';
import { beginMaintenance, endMaintenance, lockMaintenance } from '../store/maintenance/maintenance-row.ts';
import { freeFireLocks } from '../store/schedules/fire-locks.ts';

/** Answers the maintenance in force; null: nothing was written, since `until` is not in the future. */
export async function startMaintenance(
  database: Database,
  asked: Omit<Maintenance, 'since'>,
  auditor?: Auditor,
): Promise<Maintenance | null> {
  return database.transaction(async (tx) => {
    const before = await lockMaintenance(tx);
    const begun = await beginMaintenance(tx, asked);
    if (!begun) return null;
    await freeFireLocks(tx);
    const { until, dispatch } = begun;
    const detail = { dispatch, until: until === null ? null : isoInstant(until), replaced: before !== null };
    if (!isDeepStrictEqual(before, begun))
      await auditor?.note(tx, { action: 'maintenance.on', subject: null, scheduleId: null, detail });
    return begun;
  });
}

/** The next tick of any instance plans what was due meanwhile. */
export async function stopMaintenance(database: Database, auditor?: Auditor): Promise<void> {
  await database.transaction(async (tx) => {
    const before = await lockMaintenance(tx);
    await endMaintenance(tx);
    if (before)
      await auditor?.note(tx, { action: 'maintenance.off', subject: null, scheduleId: null, detail: {} });
  });
}
