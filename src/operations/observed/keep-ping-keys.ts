/**
 * Guarantees: a schedule has a key exactly while it observes; a key that is gone, or was replaced, is unknown from the commit on.
 * Transaction: that of the edit, or one under the schedule's row lock.
 * If the process dies here: nothing is written.
 */
import type { KeyRing } from '../../core/secrets/key-ring.ts';
import type { Schedule } from '../../core/schedules/schedule.ts';
import type { Database } from '../../postgres/database.ts';
import type { Transaction } from '../../postgres/executor.ts';
import type { Auditor } from '../../store/audit/audit-rows.ts';
import { deletePingKeys, mintPingKeys } from '../../store/runs/observed.ts';
import { lockSchedules } from '../../store/schedules/search/find-schedules.ts';
import { OperationRefused } from '../operation-refused.ts';

interface ObservingEdit {
  /** Null: it is being created. */
  before: Schedule | null;
  after: Schedule;
}

/** Costs nothing where no schedule begins or ceases to observe. */
export async function keepPingKeys(
  tx: Transaction,
  ring: KeyRing | undefined,
  edits: readonly ObservingEdit[],
): Promise<void> {
  const observes = (schedule: Schedule | null) => (schedule?.definition.observe ?? null) !== null;
  const uidsOf = (some: readonly ObservingEdit[]) => some.map(({ after }) => after.uid);
  await mintPingKeys(tx, ring, uidsOf(edits.filter(({ before, after }) => !observes(before) && observes(after))));
  await deletePingKeys(tx, uidsOf(edits.filter(({ before, after }) => observes(before) && !observes(after))));
}

/** Null: there is no such schedule. @throws OperationRefused where it does not observe */
export async function replacePingKey(
  { database, secrets, auditor }: { database: Database; secrets: KeyRing; auditor?: Auditor },
  id: string,
): Promise<string | null> {
  return database.transaction(async (tx) => {
    const schedule = (await lockSchedules(tx, [id])).get(id);
    if (!schedule) return null;
    if (schedule.definition.observe === null)
      throw new OperationRefused(409, `schedule ${id} observes nothing, and has no key: set its observe first`);
    const [key = null] = await mintPingKeys(tx, secrets, [schedule.uid]);
    await auditor?.note(tx, { action: 'schedule.pingKey', subject: id, scheduleId: id, detail: {} });
    return key;
  });
}
