import { readDashboard } from './api/dashboard/built-files.ts';
import { createServer, createSignsServer } from './api/server.ts';
import type { Common, Workers } from './daemon-parts.ts';
import type { Turning } from './runtime/loop/loop.ts';
import { readinessOf } from './runtime/readiness.ts';
import type { Service } from './runtime/service.ts';

interface ApiService extends Service {
  /** Of the API; known once it has started. */
  url(): string;
  /** Of the signs of life, if they have a port of their own. */
  signsUrl(): string | null;
}

export function createApi(common: Common, workers: Workers, loops: readonly Turning[]): ApiService {
  const { config, pools, state, lease, maintenance, listensAt } = common;
  const { metrics, wake, pullQueues, heartbeat } = workers;
  const { retentionDays, host, port, metricsPort, basePath } = config;
  const hasSignsElsewhere = metricsPort !== undefined;
  metrics.observe({ ...common, loops });
  const readiness = () => readinessOf(state, lease, loops, maintenance.current());
  const learnMaintenance = () => heartbeat.wake();
  const serving = {
    ...{ database: pools.calls, promptDatabase: pools.api, slowDatabase: pools.background },
    ...{ retentionDays, basePath, readiness, hasSignsElsewhere },
    ...{ metrics, wake, pullQueues, learnMaintenance, dashboard: readDashboard() },
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
      listensAt(urls.api);
    },
    stop: async () => {
      await Promise.all([server.then((api) => api.close()), signs?.then((other) => other.close())]);
    },
  };
}
