import { createServer } from './api/server.ts';
import type { Common, Workers } from './daemon-parts.ts';
import type { Turning } from './runtime/loop/loop.ts';
import { readinessOf } from './runtime/readiness.ts';
import type { Service } from './runtime/service.ts';

export function createApi(
  common: Common,
  workers: Workers,
  loops: readonly Turning[],
): Service & { url: () => string } {
  const { config, pools, state, lease, maintenance } = common;
  const { metrics, wake, pullQueues, heartbeat } = workers;
  const { retentionDays, host, port, basePath } = config;
  const readiness = () => readinessOf(state, lease, loops, maintenance.current());
  const learnMaintenance = () => heartbeat.wake();
  const serving = {
    ...{ database: pools.api, retentionDays, basePath, readiness },
    ...{ metrics, wake, pullQueues, learnMaintenance },
  };
  const server = createServer({ ...common, ...serving });
  let url = '';
  return {
    name: 'API',
    url: () => url,
    start: async () => {
      url = await (await server).listen({ host, port });
      common.listensAt(url);
    },
    stop: async () => {
      await (await server).close();
    },
  };
}
