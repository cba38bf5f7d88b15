import { hostname } from 'node:os';
import { readDashboard } from '../api/dashboard/routes.ts';
import type { ApiDeps } from '../api/deps.ts';
import { createServer, createSignsServer } from '../api/server.ts';
import type { Logger } from '../observability/log/logger.ts';
import { takeOver } from '../operations/installation-changes.ts';
import type { Turning } from '../runtime/loop/loop.ts';
import { isTooMany } from '../postgres/connection-budget.ts';
import { listen } from '../postgres/connection/lasting-connection.ts';
import { readinessOf } from '../runtime/readiness.ts';
import type { Service } from '../runtime/service.ts';
import type { ServicesDeps } from '../runtime/service-table.ts';
import { auditorFor } from '../store/audit/audit-rows.ts';
import { INSTALLATION_CHANGED } from '../store/instances/installation-row.ts';
import { WORK_FOR_PULL } from '../store/queues/queue-workers.ts';
import { RUNS_RETURNED } from '../store/runs/claims/held-claims.ts';
import { SCHEDULES_CHANGED } from '../store/schedules/write-schedules.ts';
import type { Common, Workers } from './parts.ts';

interface ApiService extends Service {
  /** Of the API; known once it has started. */
  url(): string;
  /** Of the signs of life, if they have a port of their own. */
  signsUrl(): string | null;
}

interface Around {
  loops: readonly Turning[];
  /** Somebody has taken over: this instance may have work now. */
  lookAgain: () => void;
}

export function createApi(common: Common, workers: Workers, { loops, lookAgain }: Around): ApiService {
  const { config, pools, state, lease, installation, listensAt } = common;
  const { metrics, wake, pullQueues, logFollowers, heartbeat, openRunCaps } = workers;
  const { retentionDays, runLogKib, host, port, metricsPort, basePath } = config;
  const hasSignsElsewhere = metricsPort !== undefined;
  metrics.observe({ ...common, loops });
  const readiness = () => readinessOf(state, lease, loops, installation);
  const learnInstallation = () => heartbeat.wake();
  const serving = {
    ...{ database: pools.calls, promptDatabase: pools.api, slowDatabase: pools.background },
    ...{ retentionDays, runLogKib, basePath, readiness, hasSignsElsewhere },
    ...{
      metrics,
      wake,
      pullQueues,
      logFollowers,
      openRunCaps,
      learnInstallation,
      dashboard: readDashboard(),
    },
    ...{ installation: () => installation.current(), takeOver: takingOver(common, lookAgain) },
  };
  const server = createServer({ ...common, ...serving });
  const signs = hasSignsElsewhere ? createSignsServer({ ...common, basePath, readiness, metrics }) : null;
  const urls = { api: '', signs: null as string | null };
  return {
    name: 'API',
    url: () => urls.api,
    signsUrl: () => urls.signs,
    start: async () => {
      urls.signs = (await (await signs)?.listen({ host, port: metricsPort ?? 0 })) ?? null;
      if (urls.signs !== null) listensAt(urls.signs);
      urls.api = await (await server).listen({ host, port });
      state.port = listensAt(urls.api);
    },
    stop: async () => {
      await Promise.all([server.then((api) => api.close()), signs?.then((other) => other.close())]);
    },
  };
}

/** On a connection of its own: with FIRELOCK_OBSERVE, those of this instance only read. */
function takingOver({ config, openWriting }: Common, lookAgain: () => void): ApiDeps['takeOver'] {
  return async (since, caller) => {
    const database = openWriting();
    try {
      const { signal } = new AbortController();
      const { lockTtlSeconds, observe: isSet } = config;
      const deps = { database, lockTtlSeconds, signal, isSet, auditor: auditorFor(caller) };
      const done = await takeOver(deps, { since, by: caller.name });
      lookAgain();
      return { ...done, observesOn: isSet };
    } finally {
      await database.close();
    }
  };
}

/** Wakes the loops that have work because of what another instance did. If a hint is lost, the work only waits longer. */
export function createHints({ databaseUrl, budget }: Common, workers: Workers): Service {
  const { tick, resumer, dispatchers, pullQueues, heartbeat } = workers;
  const sparing = {
    mayListen: () => budget.hasAllFirsts(),
    isTooMany,
    onScarce: (giveUp: () => void) => budget.onScarce(giveUp),
  };
  const heard = {
    [SCHEDULES_CHANGED]: () => [tick, resumer].forEach((loop) => loop.wake()),
    [RUNS_RETURNED]: () => dispatchers.wake(),
    [WORK_FOR_PULL]: () => pullQueues.wake(),
    [INSTALLATION_CHANGED]: () => heartbeat.wake(),
  };
  let hints: ReturnType<typeof listen> | undefined;
  return {
    name: 'hints',
    start: () => {
      hints = listen(databaseUrl, heard, sparing);
    },
    stop: () => hints?.stop(),
  };
}

/** Stops once the last attempt has ended, a little before the daemon would abort it. */
export function createTracing({ config, lease, ...common }: Common, stopLimitMs: number): Service {
  const { traces } = config;
  let service: Service | undefined;
  return {
    name: 'traces',
    start: async () => {
      if (traces === undefined) return;
      const { createTraces } = await import('../observability/traces.ts');
      const instanceId = () => lease.instanceId;
      service = createTraces({
        ...common,
        traces,
        host: hostname(),
        instanceId,
        stopLimitMs: 0.8 * stopLimitMs,
      });
      await service.start();
    },
    stop: () => service?.stop(),
  };
}

/** The log lines about services that do not stop. */
export function stopLines(logger: Logger): ServicesDeps {
  return {
    onFailure: (name, error) => logger.error({ err: error }, `could not stop the ${name} service`),
    onOverdue: (name) => logger.warn(`the ${name} service has not stopped in time`),
  };
}
