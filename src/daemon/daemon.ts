import { createMigrations } from './migrations.ts';
import {
  type Common,
  type DaemonOptions,
  type Parts,
  type Workers,
  createCommon,
  createWorkers,
  standardParts,
} from './parts.ts';
import { createApi, createHints, createTracing, stopLines } from './services.ts';
import type { Loop, Turning } from '../runtime/loop/loop.ts';
import { type Service, onlyStopping } from '../runtime/service.ts';
import { type ServiceEntry, type StopPhase, createServices, loopsOf } from '../runtime/service-table.ts';
import { createWatchdog } from '../runtime/watchdog/watchdog.ts';
import { within } from '../runtime/within.ts';
import { markInstanceLeft } from '../store/instances/instances.ts';

export interface Daemon {
  /** Resolves when it listens, rejects if it cannot. Services that need the database start as soon as there is one. */
  start(): Promise<{ url: string; signsUrl: string | null }>;
  /** Reads the file of tokens again. */
  rereadTokens(): void;
  /**
   * Drains and leaves, when `main.ts` gets the first SIGTERM or SIGINT: `/readyz` answers 503 from now on; stops what claims, which hands
   * back claims that were not sent, and all background work; waits until the outcomes of all attempts are written, or aborts them when
   * the time is up; stops what writes outcomes; leaves the instances, closes the API, the targets and the databases. Resolves then.
   */
  stop(): Promise<void>;
}

/** If a pass does not return within this time, the process ends: far more than all its statements may take together. */
const WATCHDOG_LIMIT_SECONDS = 120;
/** The time to write the outcomes of aborted attempts. */
const ABORTED_LIMIT_MS = 4_000;
/** Less than its stop limit, so that the log gets the result. */
const LEAVE_LIMIT_MS = 800;

/**
 * How long the stop of a service may take, after the time that attempts have to end (FIRELOCK_SHUTDOWN_SECONDS). The last two phases take
 * 4 s at most: with ABORTED_LIMIT_MS 2 s less than the 10 s that a container gets.
 */
const STOP_LIMIT_MS = {
  /** Work that must be done while there is any time. */
  always: Infinity,
  /** Enough for a statement of a quick pass; if it is cut off, another instance finds the work and does it. */
  work: 5_000,
  /** Work that may take long, and goes on elsewhere or later. */
  look: 1_000,
  leaving: 1_000,
  closing: 500,
};

/** Builds everything; the tables below say when each part starts and stops. */
export function createDaemon(options: DaemonOptions, parts: Partial<Parts> = {}): Daemon {
  const common = createCommon(options, { ...standardParts(), ...parts });
  const { config, logger, state } = common;
  const workers = createWorkers(common);
  const { dispatchers } = workers;
  const working = workTable(common, workers);
  const loops = loopsOf(working);
  const api = createApi(common, workers, { loops, lookAgain: () => migrations.wake() });
  /** Handoffs aborted at the end of the shutdown time. */
  const ending = { cutOff: 0 };
  const migrations = createMigrations(common, workers, () => services.start('migrated'));
  const services = createServices(
    [
      ...baseTable(common, workers, { api, migrations, ending }),
      ...working,
      row(watchdogOf(common, loops), 'settling', STOP_LIMIT_MS.leaving),
    ],
    stopLines(logger),
  );

  return {
    start: async () => {
      await services.start('atOnce');
      return { url: api.url(), signsUrl: api.signsUrl() };
    },
    rereadTokens: () => common.rereadTokens(),
    stop: async () => {
      state.stopping = true;
      const drained = Promise.all([services.stop('claiming'), services.stop('work')]).then(() => dispatchers.drained());
      if (!(await within(drained, config.shutdownSeconds * 1000))) {
        ending.cutOff = abortHandoffs(dispatchers, logger);
        await within(drained, ABORTED_LIMIT_MS);
      }
      await services.stop('settling');
      await services.stop('last');
    },
  };
}

/** Aborts the attempts under way; answers how many there were. */
function abortHandoffs(dispatchers: Workers['dispatchers'], logger: Common['logger']): number {
  const inFlight = dispatchers.inFlight();
  const left = { inFlight, unsettled: dispatchers.claimed() - inFlight };
  if (dispatchers.claimed() > 0) logger.warn(left, 'the shutdown time is over; handoffs still under way are aborted');
  dispatchers.abort();
  return inFlight;
}

/**
 * In the order of their starts. Once there are connections, the heartbeat is first: other instances treat locks and
 * claims of an unlisted instance as free.
 */
export function workTable(common: Common, workers: Workers): ServiceEntry[] {
  const { work, look, leaving, always } = STOP_LIMIT_MS;
  return [
    row(workers.connections, 'work', look),
    row(workers.heartbeat, 'settling', leaving),
    row(workers.settler, 'settling', leaving),
    row(workers.effects, 'settling', leaving),
    row(workers.alertEffects, 'settling', leaving),
    row(workers.begunEffects, 'settling', leaving),
    row(workers.backlogs, 'work', work),
    row(workers.pauser, 'settling', leaving),
    row(workers.canceller, 'settling', leaving),
    row(workers.admission, 'claiming', work),
    row(workers.dispatcher, 'claiming', always),
    row(workers.messageDispatcher, 'claiming', always),
    row(workers.tick, 'claiming', work),
    row(workers.resumer, 'claiming', work),
    row(workers.readAhead, 'claiming', look),
    row(onlyStopping('fire-locks', releasingFireLocks(common, workers)), 'claiming', always),
    row(workers.pullQueues, 'claiming', work),
    row(workers.logFollowers, 'claiming', look),
    row(workers.recovery, 'work', work),
    row(workers.backstop, 'work', look),
    row(workers.expiry, 'work', work),
    row(workers.alertWatch, 'work', look),
    row(workers.expectWatch, 'work', look),
    row(workers.waitingWatch, 'work', look),
    row(workers.partitionMaker, 'work', look),
    row(workers.partitionDropper, 'work', look),
    row(workers.zoneWatch, 'work', look),
    row(workers.calendarWatch, 'work', look),
    row(workers.gauges, 'work', look),
    ...(workers.scopeCaps === null ? [] : [row(workers.scopeCaps, 'work', look)]),
    row(workers.idleMemory, 'work', look),
    // Its connection comes after those of all others.
    row(createHints(common, workers), 'work', look),
  ];
}

interface Base {
  api: Service;
  migrations: Loop;
  ending: { cutOff: number };
}

/** The services that the others need. Those that stop last do so from the bottom up: the API answers nearly to the end. */
function baseTable(common: Common, workers: Workers, { api, migrations, ending }: Base): ServiceEntry[] {
  const { work, leaving, closing } = STOP_LIMIT_MS;
  const { pools, targets } = common;
  const closeAll = () => Promise.all([...new Set(Object.values(pools))].map((pool) => pool.close()));
  return [
    row(onlyStopping('databases', closeAll), 'last', closing),
    row(
      onlyStopping('targets', () => targets.close()),
      'last',
      closing,
    ),
    { ...row(api, 'last', leaving), starts: 'atOnce' },
    row(onlyStopping('membership', leavingCluster(common, workers, ending)), 'last', leaving),
    { ...row(createTracing(common, leaving), 'settling', leaving), starts: 'atOnce' },
    // The watchdog does not watch it: it takes as long as the migration takes.
    { ...row(plain(migrations), 'work', work), starts: 'atOnce' },
  ];
}

function row(service: Service, stops: StopPhase, stopLimitMs: number): ServiceEntry {
  return { service, starts: 'migrated', stops, stopLimitMs };
}

function plain(loop: Loop): Service {
  return { name: loop.name, start: () => loop.start(), stop: () => loop.stop() };
}

/** Waits for the tick under way, whose plan would be fenced otherwise, but for no longer than a statement takes. */
function releasingFireLocks({ state }: Common, { tick, ...pipeline }: Workers): () => Promise<void> {
  return async () => {
    await within(Promise.resolve(tick.stop()), STOP_LIMIT_MS.work);
    if (state.working) await pipeline.releaseFireLocks();
  };
}

/** Uses the connection of the heartbeats, which have ended. */
function leavingCluster(
  { state, pools, lease, events, installation }: Common,
  { dispatchers }: Workers,
  ending: { cutOff: number },
): () => Promise<void> {
  return async () => {
    const { instanceId } = lease;
    if (installation.observes()) return;
    try {
      if (state.migrated) await pools.heartbeat.run((db) => markInstanceLeft(db, instanceId), LEAVE_LIMIT_MS);
    } finally {
      const unfinished = dispatchers.claimed();
      events.emit({ type: 'instanceLeft', instanceId, unfinished, cutOff: ending.cutOff });
    }
  };
}

function watchdogOf({ logger, onStuck }: Common, loops: readonly Turning[]): Service {
  return createWatchdog({
    loops,
    maxTurns: WATCHDOG_LIMIT_SECONDS,
    onStuck: (loop) =>
      onStuck(`the ${loop} loop is stuck: a pass has not ended; the process ends and should be started again`),
    onThreadLost: (error) =>
      logger.error({ err: error }, 'the watchdog thread has ended: a blocked event loop will not be noticed'),
  });
}
