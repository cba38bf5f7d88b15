import { hostname } from 'node:os';
import type { Common } from './daemon-parts.ts';
import type { Service } from './runtime/service.ts';

/** Stops once the last attempt has ended, a little before the daemon would abort it. */
export function createTracing({ config, lease, ...common }: Common, stopLimitMs: number): Service {
  const { traces } = config;
  let service: Service | undefined;
  return {
    name: 'traces',
    start: async () => {
      if (traces === undefined) return;
      const { createTraces } = await import('./observability/traces/traces.ts');
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
