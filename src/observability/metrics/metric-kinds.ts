import { Counter, type Registry } from 'prom-client';
import { SecondsHistogram } from './seconds-histogram.ts';

/** Makes counters and histograms of seconds in a registry. */
export function metricsIn(registry: Registry) {
  const registers = [registry];
  return {
    counter: (name: string, help: string, ...labelNames: string[]) =>
      new Counter({ name, help, labelNames, registers }),
    seconds: (name: string, help: string, label?: string) =>
      new SecondsHistogram(registry, name, help, label),
  };
}
