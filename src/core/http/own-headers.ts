import { type Instant, isoInstant } from '../instant.ts';
import type { TemplateValues } from './template.ts';

export interface Sender {
  now: Instant;
  userAgent: string;
  /** The id of the request's span. */
  spanId: string;
}

/** The headers of every request but its signature, which users cannot set: names and values in turn. */
export function ownHeaders(
  { runId, scheduleId, scheduledFor }: TemplateValues,
  { now, userAgent, spanId }: Sender,
): string[] {
  return [
    'user-agent',
    userAgent,
    'webhook-id',
    runId,
    'webhook-timestamp',
    String(Math.floor(now / 1000)),
    'idempotency-key',
    runId,
    'ce-specversion',
    '1.0',
    'ce-id',
    runId,
    'ce-source',
    scheduleId === null ? '/runs' : `/schedules/${scheduleId}`,
    'ce-type',
    'firelock.run',
    'ce-time',
    isoInstant(scheduledFor),
    'traceparent',
    traceparent(runId, spanId),
  ];
}

/** W3C Trace Context: all attempts of a run share one trace, and each is a span. */
function traceparent(runId: string, spanId: string): string {
  return `00-${runId.replaceAll('-', '')}-${spanId}-01`;
}
