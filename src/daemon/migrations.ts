import type { Common, Workers } from './parts.ts';
import { migrate } from '../postgres/migrate.ts';
import { checkRights } from '../postgres/privileges.ts';
import { type Loop, createLoop } from '../runtime/loop/loop.ts';

/** Migrates the schema, then starts the work. Its stop ends the wait for a lock. */
export function createMigrations(common: Common, workers: Workers, startWorkers: () => Promise<void>): Loop {
  const { config, databaseUrl, pools, clock, events, state } = common;
  const stopped = new AbortController();
  const { signal } = stopped;
  const loop = createLoop({
    name: 'migrations',
    clock,
    body: async () => {
      const url = config.migrationDatabaseUrl ?? databaseUrl;
      const count = await migrate(url, {
        onWait: (wait) => events.emit({ type: 'migrationWaits', wait }),
        signal,
      }).catch((error: unknown) => {
        if (signal.aborted) return null;
        throw error;
      });
      if (count === null) return Infinity;
      await checkRights(pools.background);
      events.emit({ type: 'migrationsApplied', count });
      if (!(await isPrepared(common, workers)) || state.stopping) return Infinity;
      state.migrated = true;
      await startWorkers();
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

/** Work before the first fire; false: the process should end. */
async function isPrepared(common: Common, workers: Workers): Promise<boolean> {
  if (common.config.schedulesFile === undefined) return true;
  const { applySchedulesFile } = await import('./schedules-file-at-start.ts');
  return applySchedulesFile(common, workers);
}
