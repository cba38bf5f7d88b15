import { hostname } from 'node:os';
import { createServer } from './api/server.ts';
import type { Config } from './config/config.ts';
import { createPullQueues } from './flow/pull-queues.ts';
import { createPipeline } from './flow/pipeline.ts';
import { createGaugeSampler } from './observability/gauge-sampler.ts';
import { logEvents } from './observability/log-lines.ts';
import type { Logger } from './observability/logger.ts';
import { createMetrics } from './observability/metrics.ts';
import { createDaysAhead } from './recovery/days-ahead.ts';
import { createHeartbeat } from './recovery/heartbeat.ts';
import { createRecovery } from './recovery/recovery.ts';
import { createExpiry } from './recovery/expiry.ts';
import { createRetention } from './recovery/retention.ts';
import { createZoneWatch } from './recovery/zone-watch.ts';
import { type Clock, systemClock } from './runtime/clock.ts';
import { createDatabaseClock } from './runtime/database-clock.ts';
import { type EventBus, createEventBus } from './runtime/event-bus.ts';
import { createLease } from './runtime/lease.ts';
import { createLoop } from './runtime/loop.ts';
import { createInstanceState, readinessOf } from './runtime/readiness.ts';
import { createWatchdog } from './runtime/watchdog.ts';
import { RUNS_RETURNED } from './store/claims.ts';
import { listen } from './store/connection.ts';
import { type Database, openDatabase } from './store/database.ts';
import { markInstanceLeft } from './store/instances.ts';
import { migrate } from './store/migrate.ts';
import type { Aftermath } from './store/followers.ts';
import { createOpenSpan } from './store/open-runs.ts';
import { WORK_FOR_PULL } from './store/queues.ts';
import { SCHEDULES_CHANGED } from './store/schedule-writes.ts';
import { createHttpTarget } from './targets/http.ts';
import { createTargetRegistry } from './targets/registry.ts';
import type { TargetKind } from './targets/target.ts';

export interface DaemonOptions {
  config: Config;
  databaseUrl: string;
  version: string;
  logger: Logger;
  /** It can do no more for itself: the process is to end, and to be started again. */
  onStuck: (reason: string) => void;
}

export interface Daemon {
  /** Resolves when it listens; what needs the database follows as soon as there is one. Rejects where it cannot listen. */
  start(): Promise<{ url: string }>;
  /** Drains and leaves: see below. Resolves when nothing of it runs any more, or when its time is up. */
  stop(): Promise<void>;
}

/** What the daemon is built of; a test build puts its own between. */
export interface Parts {
  clock: Clock;
  events: EventBus;
  openDatabase: (url: string, size: number) => Database;
  httpTarget: (deps: Parameters<typeof createHttpTarget>[0]) => TargetKind;
}

/** After which a pass that did not come back ends the process: far more than all its statements may take together. */
const WATCHDOG_PATIENCE_SECONDS = 120;
/** For the outcomes of aborted attempts to be written. */
const ABORTED_LIMIT_MS = 5_000;
const LEAVING_LIMIT_MS = 3_000;

/** Builds everything, and knows in which order it starts and stops. */
export function createDaemon(options: DaemonOptions, parts: Partial<Parts> = {}): Daemon {
  const { config, databaseUrl, version, logger } = options;
  const { clock, events, openDatabase, httpTarget }: Parts = { ...standardParts(), ...parts };
  const databaseClock = createDatabaseClock(clock);
  const lease = createLease(clock, config.instanceTtlSeconds);
  logEvents(events, logger);
  // Apart, so that no number of slow questions to the API keeps a heartbeat or a fire waiting for a connection.
  const connectionsOfApi = Math.ceil(config.databasePool / 3);
  const database = openDatabase(databaseUrl, config.databasePool - connectionsOfApi);
  const databaseOfApi = openDatabase(databaseUrl, connectionsOfApi);
  // One more, so that nothing that is slow can make this instance look dead.
  const databaseOfHeartbeat = openDatabase(databaseUrl, 1);
  // Where migrations have a connection of their own, whoever may change the schema has that one.
  const schemaDatabase =
    config.migrationDatabaseUrl === undefined ? database : openDatabase(config.migrationDatabaseUrl, 1);
  const targets = createTargetRegistry([
    httpTarget({ clock, version, connectionsPerOrigin: config.dispatchPerHost }),
  ]);
  const openSpan = createOpenSpan(database);
  const common = { database, clock, databaseClock, events, lease, openSpan };
  const zoneData = process.versions['tz'] ?? 'unknown';

  const pullQueues = createPullQueues({ ...common, database: databaseOfApi });
  const pipeline = createPipeline({
    ...common,
    ...config,
    targets,
    concurrency: config.dispatchConcurrency,
    concurrencyPerLane: config.dispatchPerHost,
    wakeWorkers: () => pullQueues.announce(),
  });
  const recovery = createRecovery({
    ...common,
    ...config,
    intervalSeconds: config.recoveryIntervalSeconds,
    holds: (runId, attempt) => pipeline.dispatcher.holds(runId, attempt),
    wakeDispatch: () => pipeline.dispatcher.wake(),
    followUp: (aftermath) => pipeline.followUps.add(aftermath),
  });
  const followUp = (aftermath: Aftermath) => pipeline.followUps.add(aftermath);
  const expiry = createExpiry({ ...common, targets, followUp });
  const retention = createRetention({ ...common, ...config, schemaDatabase });
  const daysAhead = createDaysAhead({ ...common, schemaDatabase });
  const zoneWatch = createZoneWatch({ ...common, zoneData });
  const heartbeat = createHeartbeat({
    ...common,
    database: databaseOfHeartbeat,
    instance: { host: hostname(), version, zoneData, ttlSeconds: config.instanceTtlSeconds },
    intervalSeconds: config.heartbeatIntervalSeconds,
    flush: () => pipeline.settler.flush(),
    wakeRecovery: () => recovery.wake(),
  });
  const metrics = createMetrics({
    clock,
    events,
    version,
    zoneData,
    inFlight: () => pipeline.dispatcher.inFlight(),
    leaseValid: () => lease.holds(),
  });
  const gauges = createGaugeSampler({ ...common, ...config, metrics });

  const state = createInstanceState(events, clock);
  const { settler, followUps, dependents, pauser, dispatcher, tick } = pipeline;
  const ends = [settler, followUps, dependents, pauser];
  const loops = [
    heartbeat,
    ...ends,
    dispatcher,
    tick,
    pullQueues,
    recovery,
    expiry,
    daysAhead,
    retention,
    zoneWatch,
    gauges,
  ];
  const watchdog = createWatchdog({
    loops,
    patience: WATCHDOG_PATIENCE_SECONDS,
    onStuck: (loop) => options.onStuck(`the ${loop} loop has not come back from a pass`),
    onThreadLost: (error) =>
      logger.error({ err: error }, 'the watchdog’s thread is gone: a blocked event loop will not be noticed'),
  });
  const migrations = createLoop({
    name: 'migrations',
    clock,
    body: async () => {
      const count = await migrate(config.migrationDatabaseUrl ?? databaseUrl);
      events.emit({ type: 'migrationsApplied', count });
      if (state.stopping) return Infinity;
      state.migrated = true;
      for (const service of [...loops, watchdog]) await service.start();
      return Infinity;
    },
    events,
  });
  const hints = listen(databaseUrl, {
    [SCHEDULES_CHANGED]: () => pipeline.tick.wake(),
    [RUNS_RETURNED]: () => pipeline.dispatcher.wake(),
    [WORK_FOR_PULL]: () => pullQueues.wake(),
  });
  const server = createServer({
    database: databaseOfApi,
    targets,
    events,
    metrics,
    version,
    logger,
    retentionDays: config.retentionDays,
    followUp,
    pullQueues,
    readiness: () => readinessOf(state, lease, loops),
  });

  const attempt = attemptLogged(logger);
  /** Handoffs aborted at the end of the shutdown time. */
  let cutOff = 0;

  /**
   * Drains within the shutdown time, then aborts what is left of it, then leaves. Each part has its limit, whatever the
   * database does: in all, less than the 10 s over the shutdown time that a container gives.
   */
  async function stop(): Promise<void> {
    state.stopping = true;
    const draining = drain();
    if (!(await within(draining, config.shutdownSeconds * 1000))) {
      const { dispatcher } = pipeline;
      const left = {
        inFlight: dispatcher.inFlight(),
        unsettled: dispatcher.claimed() - dispatcher.inFlight(),
      };
      logger.warn(left, 'the shutdown time is up; handoffs still under way are aborted');
      cutOff = left.inFlight;
      dispatcher.abort();
      await within(draining, ABORTED_LIMIT_MS);
    }
    await within(leave(), LEAVING_LIMIT_MS);
  }

  /** Stops ticking and claiming, hands back what was not sent, and waits for what is under way; heartbeats go on. */
  async function drain(): Promise<void> {
    await attempt('stop migrations', () => migrations.stop());
    await attempt('stop ticking', () => pipeline.tick.stop());
    await attempt('answer workers that wait', () => pullQueues.stop());
    await attempt('stop recovering', () => recovery.stop());
    await attempt('stop expiring', () => expiry.stop());
    await attempt('stop making days', () => daysAhead.stop());
    await attempt('stop dropping history', () => retention.stop());
    await attempt('stop watching the zone data', () => zoneWatch.stop());
    await attempt('hand back unsent runs', () => pipeline.dispatcher.stop());
    if (state.migrated) await attempt('release fire-locks', () => pipeline.releaseFireLocks());
    await pipeline.dispatcher.drained();
  }

  /** The API answers to the end, and says at /readyz that it is going. A step that fails does not keep the next. */
  async function leave(): Promise<void> {
    await attempt('stop the watchdog', () => watchdog.stop());
    await attempt('stop settling', () => pipeline.settler.stop());
    await attempt('stop judging overlaps', () => pipeline.followUps.stop());
    await attempt('stop releasing dependents', () => pipeline.dependents.stop());
    await attempt('stop pausing schedules', () => pipeline.pauser.stop());
    await attempt('stop telling targets', () => pipeline.canceller.stop());
    await attempt('stop heartbeats', () => heartbeat.stop());
    await attempt('stop sampling', () => gauges.stop());
    if (state.migrated)
      await attempt('leave', () => database.run((db) => markInstanceLeft(db, lease.instanceId)));
    events.emit({
      type: 'instanceLeft',
      instanceId: lease.instanceId,
      unfinished: pipeline.dispatcher.claimed(),
      cutOff,
    });
    await attempt('stop listening', async () => (await server).close());
    await attempt('close targets', () => targets.close());
    await attempt('close the database', () =>
      Promise.all([
        hints.stop(),
        ...[databaseOfApi, databaseOfHeartbeat, schemaDatabase].map((one) => one.close()),
        ...(schemaDatabase === database ? [] : [database.close()]),
      ]),
    );
  }

  return {
    start: async () => {
      const url = await (await server).listen({ host: config.host, port: config.port });
      void migrations.start();
      return { url };
    },
    stop,
  };
}

function standardParts(): Parts {
  return { clock: systemClock, events: createEventBus(), openDatabase, httpTarget: createHttpTarget };
}

async function within(promise: Promise<unknown>, limitMs: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, limitMs, false);
  });
  const inTime = await Promise.race([promise.then(() => true), late]);
  clearTimeout(timer);
  return inTime;
}

function attemptLogged(logger: Logger): (what: string, step: () => unknown) => Promise<void> {
  return async (what, step) => {
    try {
      await step();
    } catch (error) {
      logger.error({ err: error }, `could not ${what}`);
    }
  };
}
