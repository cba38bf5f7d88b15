import { hostname } from 'node:os';
import { createAccess } from '../api/access/access.ts';
import { createBrowserRules } from '../api/access/browser-rules.ts';
import { createTrustedProxies } from '../api/access/known-callers.ts';
import { ANSWER_LIMITS } from '../api/deps.ts';
import { standardLimits } from '../api/http/plugins/strangers.ts';
import { readApiTokens } from '../config/start-files.ts';
import type { Config } from '../config/config.ts';
import { parseDatabaseUrl } from '../config/database-url.ts';
import type { HttpTarget } from '../core/schedules/schedule.ts';
import { createKeyRing } from '../core/secrets/key-ring.ts';
import { createPipeline } from '../flow/pipeline.ts';
import { createLogFollowers } from '../queues/log-followers.ts';
import { createPullQueues } from '../queues/pull-queues.ts';
import { createCalendarWatch } from '../operations/calendars/calendar-changes.ts';
import { createOpenRunCaps } from '../operations/scope-caps.ts';
import { createResumer } from '../operations/schedules/pause-end.ts';
import { createPauser } from '../operations/schedules/pauser.ts';
import { createPartitionMaker } from '../history/create-partitions.ts';
import { createPartitionDropper } from '../history/drop-partitions.ts';
import { createGaugeSampler } from '../observability/metrics/gauge-sampler.ts';
import { logEvents } from '../observability/log/log-lines.ts';
import type { Logger } from '../observability/log/logger.ts';
import { createMetrics } from '../observability/metrics/metrics.ts';
import { createAlertWatch } from '../recovery/alert-watch.ts';
import { createBackstop } from '../recovery/backstop.ts';
import { createConnectionWatch } from '../recovery/connection-watch.ts';
import { createExpiry } from '../recovery/expiry.ts';
import { createExpectWatch, createWaitingWatch } from '../recovery/watches.ts';
import { createHeartbeat } from '../recovery/heartbeat.ts';
import { createRecovery } from '../recovery/recovery.ts';
import { createZoneWatch } from '../recovery/zone-watch.ts';
import { type Clock, createDatabaseClock, systemClock } from '../runtime/clock.ts';
import { createConfirmedCommits } from '../runtime/confirmed-commits.ts';
import { type EventBus, createEventBus } from '../runtime/event-bus.ts';
import { createIdleMemory } from '../runtime/idle-memory.ts';
import { createLease } from '../runtime/instance-lease.ts';
import { createInstanceState } from '../runtime/instance-state.ts';
import { createInstallationWatch } from '../runtime/installation-watch.ts';
import { createConnectionBudget } from '../postgres/connection-budget.ts';
import { openPools } from '../postgres/database-pools.ts';
import { openDatabase, readingOnly, tellingTroubles } from '../postgres/database.ts';
import { type AddressGuard, createAddressGuard } from '../targets/address-guard.ts';
import { createEmailTarget } from '../targets/email.ts';
import { createHttpTarget } from '../targets/http.ts';
import { type TargetKind, createTargetRegistry } from '../targets/target.ts';
import { countDescriptors } from './descriptors.ts';

export interface DaemonOptions {
  config: Config;
  databaseUrl: string;
  version: string;
  logger: Logger;
  /** The daemon cannot help itself: the process should end, and be started again. */
  onStuck: (reason: string) => void;
  /** The daemon was started with a wrong setting, and does not begin to work. */
  onRefused?: (lines: readonly string[]) => void;
}

/** The parts of the daemon that tests can replace. */
export interface Parts {
  clock: Clock;
  events: EventBus;
  openDatabase: typeof openDatabase;
  httpTarget: (deps: Parameters<typeof createHttpTarget>[0]) => TargetKind<HttpTarget<string>>;
}

export function standardParts(): Parts {
  return { clock: systemClock, events: createEventBus(), openDatabase, httpTarget: createHttpTarget };
}

/** What several services share. */
export type Common = ReturnType<typeof createCommon>;

export function createCommon(options: DaemonOptions, parts: Parts) {
  const { config, version, logger } = options;
  const { clock, events } = parts;
  logEvents(events, logger, clock);
  const connections = createPools(options, parts);
  const databaseClock = createDatabaseClock(clock);
  const ownPorts = new Set<number>();
  const guard = createGuard(options, ownPorts);
  const { dispatchConcurrency: concurrency, egressProxy: proxy } = config;
  // Each scope has slots of its own to one host.
  const connectionsPerOrigin = config.dispatchPerHost * (config.scopeShares.length + 1);
  const http = { clock, version, connectionsPerOrigin, concurrency, guard, proxy, events };
  const httpTarget = parts.httpTarget(http);
  const access = createDaemonAccess(config, { clock, events });
  countDescriptors(config, access.connectionLimits, events);
  return {
    ...options,
    ...access,
    ...{ clock, events, databaseClock },
    installation: createInstallationWatch({ events, clock, databaseClock }, config.observe),
    lease: createLease(clock, config.instanceTtlSeconds),
    ...{ ...connections, database: connections.pools.main },
    targets: createTargetRegistry([httpTarget, createEmailTarget({ clock, guard, events, ...config })]),
    secrets: createKeyRing(config.secretKeys),
    scopeShares: config.scopeShares,
    takesSecretFiles: config.secretsDir !== null,
    sendsMail: config.mail !== null,
    mailToDomains: config.mailToDomains,
    /** From now on, targets may not be called at this port of this machine. */
    listensAt: (url: string): number => {
      const port = Number(new URL(url).port) || HTTP_PORT;
      ownPorts.add(port);
      return port;
    },
    state: createInstanceState(events, clock),
    zoneData: process.versions['tz'] ?? 'unknown',
  };
}

/** With FIRELOCK_OBSERVE, PostgreSQL refuses what the pools might write; a take-over has a connection of its own. */
function createPools({ config, databaseUrl }: DaemonOptions, parts: Parts) {
  const open: Parts['openDatabase'] = (...asked) => {
    const database = tellingTroubles(parts.openDatabase(...asked), parts.events);
    return config.observe ? readingOnly(database) : database;
  };
  const budget = createConnectionBudget();
  return {
    budget,
    pools: openPools({ databaseUrl, connections: config.databasePool, openDatabase: open, budget }),
    openWriting: () => parts.openDatabase(databaseUrl, 1),
  };
}

const HTTP_PORT = 80;

function createGuard({ config, databaseUrl }: DaemonOptions, ownPorts: ReadonlySet<number>): AddressGuard {
  const { targetDenied: denied, targetAllowed: allowed, migrationDatabaseUrl = databaseUrl } = config;
  const databases = [...new Set([databaseUrl, migrationDatabaseUrl])].flatMap(
    (url) => parseDatabaseUrl(url)?.hosts ?? [],
  );
  return createAddressGuard({ denied, allowed, ownPorts, databases });
}

function createDaemonAccess(config: Config, deps: Pick<Parts, 'clock' | 'events'>) {
  const { events } = deps;
  if (config.isOpenToAnybody) events.emit({ type: 'openToAnybody', host: config.host });
  const access = createAccess({ ...deps, ...config });
  const proxies = createTrustedProxies(config.trustedProxies);
  return {
    access,
    browserRules: createBrowserRules({ ...deps, ...config }),
    connectionLimits: standardLimits((address) => proxies.isOne(address)),
    answerLimits: ANSWER_LIMITS,
    /** Reads the file of tokens again. If it has a fault, the tokens stay what they were, and the log says so. */
    rereadTokens: () => {
      const read = readApiTokens(config.tokenSources);
      if ('faults' in read) events.emit({ type: 'tokensKept', faults: read.faults });
      else access.replaceTokens(read.tokens);
    },
  };
}

/** Everything that claims, works and settles. */
export type Workers = ReturnType<typeof createWorkers>;

// oxlint-disable-next-line max-lines-per-function -- puts the parts together
export function createWorkers(common: Common) {
  const { config, pools } = common;
  const pullQueues = createPullQueues({ ...common, database: pools.api });
  const commits = createConfirmedCommits(common.clock);
  const pipeline = createPipeline({
    ...common,
    ...config,
    commits,
    concurrency: config.dispatchConcurrency,
    concurrencyPerLane: config.dispatchPerHost,
    wakeWorkers: () => pullQueues.announce(),
    wakeAlerts: () => alertWatch.wake(),
    pauseSchedules: (effects) => pauser.add(effects),
  });
  const { dispatchers, settler, wake, tick, definitions } = pipeline;
  const pauser = createPauser({ ...common, ...config, wake, definitions });
  const alertWatch = createAlertWatch({ ...common, ...config, wake });
  const intervalSeconds = config.recoveryIntervalSeconds;
  const background = { ...common, database: pools.background };
  const recovery = createRecovery({
    ...common,
    ...config,
    wake,
    intervalSeconds,
    hasClaim: (runId, attempt) => dispatchers.hasClaim(runId, attempt),
  });
  const backstop = createBackstop({ ...background, wake, intervalSeconds });
  common.installation.onChange(() => backstop.wake());
  const { version, zoneData, lease } = common;
  const { caps: openRunCaps, loop: scopeCaps } = createOpenRunCaps(background);
  const heartbeat = createHeartbeat({
    ...common,
    database: pools.heartbeat,
    commits,
    instance: {
      ...{ host: hostname(), version, zoneData, ttlSeconds: config.instanceTtlSeconds },
      // The API is up before the first registration, since it is so before there is a database.
      get port() {
        return common.state.port;
      },
    },
    intervalSeconds: config.heartbeatIntervalSeconds,
    flush: () => settler.flush(),
    onObserving: () => {
      if (common.state.working) common.onStuck(NOW_OBSERVING);
    },
    wakeRecovery: () => [recovery, backstop].forEach((loop) => loop.wake()),
  });
  const metrics = createMetrics({
    ...common,
    inFlight: () => dispatchers.inFlight(),
    leaseValid: () => lease.isValid(),
  });
  return {
    pullQueues,
    logFollowers: createLogFollowers({ ...common, database: pools.api }),
    ...pipeline,
    openRunCaps,
    /** Null: no scope has a cap. */
    scopeCaps,
    pauser,
    resumer: createResumer({ ...common, ...config, wake, wakeTick: () => tick.wake() }),
    recovery,
    heartbeat,
    metrics,
    backstop,
    connections: createConnectionWatch(common),
    expiry: createExpiry({ ...common, wake }),
    alertWatch,
    expectWatch: createExpectWatch({ ...background, wake }),
    waitingWatch: createWaitingWatch({ ...background, wake }),
    partitionMaker: createPartitionMaker(background),
    partitionDropper: createPartitionDropper({ ...background, ...config }),
    zoneWatch: createZoneWatch(background),
    calendarWatch: createCalendarWatch({ ...background, ...config }),
    idleMemory: createIdleMemory(common),
    gauges: createGaugeSampler({ ...background, ...config, metrics }),
  };
}

const NOW_OBSERVING =
  'this instance was declared dead, and the instances of its database only observe since then; the process ends, and observes once it is started again';
