import type { Registry } from 'prom-client';
import { SPANS_DROPPED } from '../../core/trace-events.ts';
import type { Handlers } from '../handlers.ts';
import { metricsIn } from './metric-kinds.ts';

/** Spans, on their way to the collector. */
export function traceHandlers(registry: Registry): Handlers {
  const { counter } = metricsIn(registry);
  const exported = counter('firelock_spans_exported_total', 'Spans that the trace collector has taken.');
  const dropped = counter(
    'firelock_spans_dropped_total',
    'Spans that are gone: too many waited (full), the collector does not take them (refused), the daemon stopped (stopped).',
    'reason',
  );
  for (const reason of SPANS_DROPPED) dropped.inc({ reason }, 0);
  return {
    spansExported: ({ count }) => exported.inc(count),
    spansDropped: ({ reason, count }) => dropped.inc({ reason }, count),
  };
}
