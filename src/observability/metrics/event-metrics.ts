import type { Registry } from 'prom-client';
import type { FirelockEvent } from '../../core/events.ts';
import type { EventBus } from '../../runtime/event-bus.ts';
import { accessHandlers } from './access-metrics.ts';
import type { Handlers } from '../handlers.ts';
import { historyHandlers } from './history-metrics.ts';
import { loopHandlers } from './loop-metrics.ts';
import { runHandlers } from './run-metrics.ts';
import { traceHandlers } from './trace-metrics.ts';

/** Counters and histograms of events in this process, since its start. */
export function countEvents(registry: Registry, events: EventBus): void {
  const handlers: Handlers = {
    ...runHandlers(registry),
    ...loopHandlers(registry),
    ...historyHandlers(registry),
    ...accessHandlers(registry),
    ...traceHandlers(registry),
  };
  events.subscribe((event) => {
    (handlers[event.type] as ((event: FirelockEvent) => void) | undefined)?.(event);
  });
}
