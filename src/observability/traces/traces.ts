import type { TracesConfig } from '../../config/otel-variables.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { EventBus } from '../../runtime/event-bus.ts';
import type { Service } from '../../runtime/service.ts';
import { spanOf } from './otlp.ts';
import { createSpanExporter } from './span-exporter.ts';

interface TracesDeps {
  traces: TracesConfig;
  clock: Clock;
  events: EventBus;
  version: string;
  host: string;
  /** It changes when the instance is replaced. */
  instanceId: () => string;
  /** How long sending the last spans may take when it stops. */
  stopLimitMs: number;
}

/** Makes a span of each attempt and sends it to the collector. Loaded only if there is a collector. */
export function createTraces({ traces, host, instanceId, stopLimitMs, ...deps }: TracesDeps): Service {
  const { events, version } = deps;
  const ofProcess = { 'service.version': version, 'host.name': host };
  const resource = () => ({
    version,
    attributes: { ...ofProcess, 'service.instance.id': instanceId(), ...traces.attributes },
  });
  const exporter = createSpanExporter({ ...deps, ...traces, resource });
  events.subscribe((event) => {
    if (event.type !== 'attemptEnded' || event.spanId === undefined) return;
    exporter.add(spanOf(event, event.spanId));
  });
  return {
    name: 'traces',
    start: () => exporter.loop.start(),
    stop: () => exporter.stop(stopLimitMs),
  };
}
