/**
 * Guarantees: only one call takes over, and only while no instance works on this database by the database's clock. What was due before
 *   `since` stands as skipped; open runs that the other installation may have sent are treated as after a restored backup.
 * Transaction: those of `firelock resume`, each under the lock of the installation; the last one records the take-over.
 * If the process dies here: nobody has taken over, and the instances still observe; called again, it goes on.
 */
import { isDeepStrictEqual } from 'node:util';
import { type Instant, isoInstant, isoOrNull } from '../core/instant.ts';
import { type Installation, type TakeOver, WORKS, type InstallationState } from '../core/installation.ts';
import type { Executor, Transaction } from '../postgres/executor.ts';
import { databaseNow } from '../postgres/sql/rows.ts';
import type { Auditor } from '../store/audit/audit-rows.ts';
import {
  endSilentInstances,
  hasWorkedSince,
  lockInstallation,
  mayOnlyRead,
  readInstallation,
  recordTakeOver,
  setState,
} from '../store/instances/installation-row.ts';
import { OperationRefused } from './operation-refused.ts';
import { type Alone, type ResumeDeps, type Resumed, checkNoneLives, skipThrough } from './resume.ts';
import type { Database } from '../postgres/database.ts';
import { NotNow } from '../postgres/errors.ts';
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
    throw new NotNow('the instances of this database only observe: a take-over ends that, and no maintenance');
  return installation;
}

/** Nobody takes over, and nothing was recorded as taken over. */
const refused = (why: string) => new OperationRefused(409, why);

interface TakeOverDeps extends ResumeDeps {
  /** FIRELOCK_OBSERVE is set here: then the database need not say that its instances observe. */
  isSet: boolean;
  auditor: Auditor;
}

export interface TookOver {
  tookOver: TakeOver;
  resumed: Resumed;
}

const LIMIT_MS = 60_000;

/** @throws OperationRefused; InstancesLive if an instance works here */
export async function takeOver(
  { isSet, auditor, ...deps }: TakeOverDeps,
  { since, by }: Pick<TakeOver, 'since' | 'by'>,
): Promise<TookOver> {
  const { database } = deps;
  if (await database.run(mayOnlyRead)) throw refused(READ_ONLY);
  const before = await database.run((db) => installationToTake(db, isSet));
  const alone: Alone = (work, limitMs) =>
    database.transaction(async (tx) => {
      if (!isDeepStrictEqual(await lockInstallation(tx), before)) throw refused(MOVED);
      await checkNoneLives(tx);
      return work(tx);
    }, limitMs);
  if (since > (await alone(databaseNow, LIMIT_MS))) throw refused(IN_FUTURE);
  const resumed = await skipThrough({ ...deps, alone, reason: IN_DOUBT }, since - 1);
  const tookOver = await alone(async (tx) => {
    await endSilentInstances(tx);
    const detail = { since: isoInstant(since), ...countsOf(resumed) };
    const at = await auditor.note(tx, {
      ...{ action: 'installation.take-over', subject: null, scheduleId: null },
      detail,
    });
    if (before.mode === 'observes') await setState(tx, WORKS);
    await recordTakeOver(tx, { at, since, by });
    return { at, since, by };
  }, LIMIT_MS);
  return { tookOver, resumed };
}

function countsOf({ moved, skipped, runs: { ended, asked, left } }: Resumed) {
  return { moved, skipped, unknown: ended, asked, left };
}

async function installationToTake(db: Executor, isSet: boolean): Promise<Installation> {
  const found = await readInstallation(db);
  if (found.mode === 'observes') return found;
  const { tookOver } = found;
  if (!isSet) throw refused(DOES_NOT_OBSERVE);
  if (tookOver !== null && !(await hasWorkedSince(db, tookOver.at)))
    throw refused(
      `the installation took over already, at ${isoInstant(tookOver.at)}: start the instances without FIRELOCK_OBSERVE`,
    );
  return found;
}

/**
 * From the commit on, no instance of this database registers, so none plans or sends, until a take-over; maintenance is over. Answers
 * since when.
 * @throws InstancesLive
 */
export async function observe(tx: Transaction, reason: string | null): Promise<Instant | null> {
  // First the lock: an instance that is about to register has done so, or waits.
  await setState(tx, { mode: 'observes', until: null, reason });
  await checkNoneLives(tx);
  await endSilentInstances(tx);
  return (await readInstallation(tx)).since;
}

const READ_ONLY = 'the database is read only, as a standby is: promote it first; nobody has taken over';
const MOVED = 'another call took over, or changed what the database says, in the meantime';
const DOES_NOT_OBSERVE = 'this installation does not observe: its instances fire, or do so once they are started';
const IN_FUTURE = 'since is in the future: what is due from that moment on is fired, so it must have passed';
const IN_DOUBT =
  'recorded before this installation took over; it is not known whether the other installation has sent the run';
