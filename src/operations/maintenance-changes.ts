/**
 * Guarantees: from the commit on no instance takes a fire-lock, and what is being planned under one is not recorded; while it holds
 *   runs, none is claimed either. Each instance's heartbeat tells it, so that it keeps back what it has claimed already.
 * Transaction: one; the fire-locks are freed in a statement after the one that begins it.
 * If the process dies here: maintenance is in force, or it is not.
 */
import { isDeepStrictEqual } from 'node:util';
import { type Installation, type InstallationState, WORKS } from '../core/installation.ts';
import { isoOrNull } from '../core/instant.ts';
import type { Database } from '../postgres/database.ts';
import { NotNow } from '../postgres/errors.ts';
import type { Transaction } from '../postgres/executor.ts';
import type { Auditor } from '../store/audit/audit-rows.ts';
import { lockInstallation, readInstallation, setState } from '../store/instances/installation-row.ts';
import { freeFireLocks } from '../store/schedules/fire-locks.ts';

interface Asked extends Omit<InstallationState, 'since'> {
  mode: 'plansNothing' | 'holds';
}

/** Answers the maintenance in force; null: nothing was written, since `until` is not in the future. */
export async function startMaintenance(
  database: Database,
  asked: Asked,
  auditor?: Auditor,
): Promise<InstallationState | null> {
  return database.transaction(async (tx) => {
    const before = await lockWorking(tx);
    if (!(await setState(tx, asked))) return null;
    await freeFireLocks(tx);
    const begun = await readInstallation(tx);
    const { mode, until } = begun;
    const replaced = before.mode !== 'works';
    const detail = { dispatch: mode === 'holds' ? 'hold' : 'continue', until: isoOrNull(until), replaced };
    if (!isDeepStrictEqual(before, begun))
      await auditor?.note(tx, { action: 'maintenance.on', subject: null, scheduleId: null, detail });
    return begun;
  });
}

/** The next tick of any instance plans what was due meanwhile. */
export async function stopMaintenance(database: Database, auditor?: Auditor): Promise<void> {
  await database.transaction(async (tx) => {
    const { mode } = await lockWorking(tx);
    await setState(tx, WORKS);
    if (mode !== 'works')
      await auditor?.note(tx, { action: 'maintenance.off', subject: null, scheduleId: null, detail: {} });
  });
}

/** An instance that was frozen since before the others observe may serve such a call. */
async function lockWorking(tx: Transaction): Promise<Installation> {
  const installation = await lockInstallation(tx);
  if (installation.mode === 'observes')
    throw new NotNow(
      'the instances of this database only observe: a take-over ends that, and no maintenance',
    );
  return installation;
}
