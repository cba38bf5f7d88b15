import { Counter, Histogram, type Registry } from 'prom-client';

/** From milliseconds to minutes: from a fire on time to one that waited for a restart. */
const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800];

/** Makes counters and histograms of seconds in a registry. */
export function metricsIn(registry: Registry) {
  const registers = [registry];
  return {
    counter: (name: string, help: string, ...labelNames: string[]) =>
      new Counter({ name, help, labelNames, registers }),
    seconds: (name: string, help: string, ...labelNames: string[]) =>
      new Histogram({ name, help, labelNames, buckets: SECONDS, registers }),
  };
}
