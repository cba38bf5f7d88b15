import { rejectionError } from '../../core/runs/attempts/outcome.ts';
import type { EventOf } from '../handlers.ts';

/** A span in OTLP's JSON: ids in hexadecimal, times as text in nanoseconds since 1970. */
export interface Span {
  traceId: string;
  spanId: string;
  name: string;
  kind: number;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes: Attribute[];
  status: { code?: number; message?: string };
}

interface Attribute {
  key: string;
  value: { stringValue: string } | { intValue: string };
}

const CLIENT = 3;
const ERROR = 2;

/**
 * The span of an attempt. All attempts of a run share one trace, whose id is the run's, so that instances need not know
 * each other's. Attribute names are those of OpenTelemetry's conventions for HTTP clients. Paths, queries and headers
 * are left out: they may contain secrets.
 */
export function spanOf(event: EventOf<'attemptEnded'>, spanId: string): Span {
  const { to, result, attempt } = event;
  const statusCode = 'statusCode' in result ? result.statusCode : null;
  const error = errorOf(event);
  const attributes: Record<string, string | number | null | undefined> = {
    'firelock.run.id': event.runId,
    'firelock.schedule.id': event.scheduleId,
    'firelock.attempt': attempt,
    'firelock.trigger': event.trigger,
    'firelock.recoveries': event.recoveries,
    'firelock.outcome': event.outcome,
    'http.response.status_code': statusCode,
    'http.request.resend_count': attempt > 1 ? attempt - 1 : null,
    'error.type': error && (statusCode === null ? error.kind : String(statusCode)),
    ...(to.type === 'http' ? { 'http.request.method': to.method, ...serverOf(to.url) } : {}),
  };
  return {
    traceId: event.runId.replaceAll('-', ''),
    spanId,
    name: to.type === 'http' ? to.method : event.target,
    kind: CLIENT,
    startTimeUnixNano: nanoseconds(event.startedAt, 0),
    endTimeUnixNano: nanoseconds(event.startedAt, event.durationMs),
    attributes: attributesOf(attributes),
    status: error ? { code: ERROR, message: error.message } : {},
  };
}

interface Resource {
  /** Attributes of the process. */
  attributes: Readonly<Record<string, string>>;
  /** The name of the library that makes the spans. */
  version: string;
}

/** The body of a call to the collector. */
export function exportRequest(spans: readonly Span[], { attributes, version }: Resource): string {
  const resource = { attributes: attributesOf(attributes) };
  const scopeSpans = [{ scope: { name: 'firelock', version }, spans }];
  return JSON.stringify({ resourceSpans: [{ resource, scopeSpans }] });
}

function errorOf({ result }: EventOf<'attemptEnded'>): { kind: string; message: string } | undefined {
  if (result.kind === 'accepted') return undefined;
  return result.kind === 'rejected' ? rejectionError(result) : result.error;
}

/** Empty if the URL contains templates, or is none. */
function serverOf(url: string): Record<string, string | number> {
  try {
    const { hostname, port, protocol } = new URL(url);
    const standardPort = protocol === 'https:' ? 443 : 80;
    return {
      'server.address': hostname,
      'server.port': Number(port) || standardPort,
      'url.scheme': protocol.slice(0, -1),
    };
  } catch {
    return {};
  }
}

function attributesOf(values: Readonly<Record<string, string | number | null | undefined>>): Attribute[] {
  return Object.entries(values).flatMap(([key, value]) => {
    if (value === null || value === undefined) return [];
    return [{ key, value: typeof value === 'number' ? { intValue: String(value) } : { stringValue: value } }];
  });
}

/** A double cannot hold that many digits. */
function nanoseconds(at: number, plusMs: number): string {
  return String(BigInt(at) * 1_000_000n + BigInt(Math.round(plusMs * 1_000_000)));
}
