import type { Common, Workers } from './parts.ts';
import { isMigrated, migrate } from '../postgres/migrate.ts';
import { checkRights } from '../postgres/privileges.ts';
import { mayOnlyRead, readInstallation } from '../store/instances/installation-row.ts';
import { type Loop, createLoop } from '../runtime/loop/loop.ts';

/**
 * Migrates the schema, then starts the work; or looks from time to time whether this instance still only observes. Its stop ends the
 * wait for a lock.
 */
export function createMigrations(common: Common, workers: Workers, startWorkers: () => Promise<void>): Loop {
  const { config, clock, events, state } = common;
  const stopped = new AbortController();
  const { signal } = stopped;
  const loop = createLoop({
    name: 'migrations',
    clock,
    body: async () => {
      const lookAgainMs = config.heartbeatIntervalSeconds * 1000;
      if (config.observe) {
        await lookReadingOnly(common);
        await workers.connections.start();
        return lookAgainMs;
      }
      if (!state.migrated && !(await migrateNow(common, signal))) return Infinity;
      if (await onlyObserves(common)) {
        state.migrated = true;
        await workers.connections.start();
        return lookAgainMs;
      }
      if (!(await isPrepared(common, workers)) || state.stopping) return Infinity;
      state.migrated = true;
      await startWorkers();
      state.working = true;
      return Infinity;
    },
    events,
  });
  return {
    ...loop,
    stop: () => {
      stopped.abort();
      return loop.stop();
    },
  };
}

/** False: the daemon stops. */
async function migrateNow({ config, databaseUrl, pools, events }: Common, signal: AbortSignal): Promise<boolean> {
  const url = config.migrationDatabaseUrl ?? databaseUrl;
  const count = await migrate(url, {
    onWait: (wait) => events.emit({ type: 'migrationWaits', wait }),
    signal,
  }).catch((error: unknown) => {
    if (signal.aborted) return null;
    throw error;
  });
  if (count === null) return false;
  await checkRights(pools.background);
  events.emit({ type: 'migrationsApplied', count });
  return true;
}

/** With FIRELOCK_OBSERVE nothing migrates the schema. @throws if it is older than this version */
async function lookReadingOnly({ pools, state, installation }: Common): Promise<void> {
  const { found, isReadOnly } = await pools.background.run(async (db) => {
    if (!(await isMigrated(db)))
      throw new Error('the schema is older than this version, and an instance with FIRELOCK_OBSERVE migrates nothing');
    return { found: await readInstallation(db), isReadOnly: await mayOnlyRead(db) };
  });
  installation.learn(found, isReadOnly);
  state.migrated = true;
}

/** Whether the database says that its instances only observe. Registering asks it again, under its lock. */
async function onlyObserves({ pools, installation }: Common): Promise<boolean> {
  installation.learn(await pools.background.run(readInstallation));
  return installation.observes();
}

/** Work before the first fire; false: the process should end. */
async function isPrepared(common: Common, workers: Workers): Promise<boolean> {
  if (common.config.schedulesFile === undefined) return true;
  const { applySchedulesFile } = await import('./schedules-file-at-start.ts');
  return applySchedulesFile(common, workers);
}
