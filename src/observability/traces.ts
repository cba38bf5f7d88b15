import { request } from 'undici';
import type { TracesConfig } from '../config/otel-variables.ts';
import type { Clock } from '../runtime/clock.ts';
import type { EventBus } from '../runtime/event-bus.ts';
import { type Loop, createLoop } from '../runtime/loop/loop.ts';
import { reasonOf } from '../runtime/reason.ts';
import type { Service } from '../runtime/service.ts';
import { within } from '../runtime/within.ts';
import { rejectionError } from '../core/runs/attempts/outcome.ts';
import type { EventOf } from './handlers.ts';

interface TracesDeps {
  traces: TracesConfig;
  clock: Clock;
  events: EventBus;
  version: string;
  host: string;
  /** It changes when the instance is replaced. */
  instanceId: () => string;
  /** How long sending the last spans may take when it stops; the rest is dropped. */
  stopLimitMs: number;
}

interface Traces extends Service {
  add(span: Span): void;
  loop: Loop;
}

/** The most spans that wait: some 10 MB. The spans of 10,000 fires within a second fit. */
const MAX_WAITING = 20_000;
const BATCH = 1_000;
const EVERY_MS = 1_000;
const MAX_BACKOFF_MS = 30_000;

interface State extends TracesDeps {
  waiting: Span[];
  /** Spans that were dropped for want of room since the last pass. */
  unheardDrops: number;
  /** Calls in a row. */
  failures: number;
  abort: AbortController;
}

/**
 * Makes a span of each attempt, and sends spans to the collector in batches, beside all other work: adding a span never waits. One call
 * is under way at a time. Loaded only if there is a collector.
 */
export function createTraces(deps: TracesDeps): Traces {
  const { events, clock } = deps;
  const state: State = { ...deps, waiting: [], unheardDrops: 0, failures: 0, abort: new AbortController() };
  const loop = createLoop({ name: 'traces', clock, events, body: () => pass(state) });
  const add = (span: Span) => {
    if (state.waiting.length >= MAX_WAITING) state.unheardDrops += 1;
    else state.waiting.push(span);
  };
  events.subscribe((event) => {
    if (event.type === 'attemptEnded' && event.spanId !== undefined) add(spanOf(event, event.spanId));
  });
  return { name: 'traces', add, loop, start: () => loop.start(), stop: () => stop(state, loop) };
}

async function pass(state: State): Promise<number> {
  const { events, unheardDrops } = state;
  if (unheardDrops > 0) events.emit({ type: 'spansDropped', reason: 'full', count: unheardDrops });
  state.unheardDrops = 0;
  if (state.waiting.length > 0 && !(await sendOne(state)))
    return Math.min(MAX_BACKOFF_MS, EVERY_MS * 2 ** Math.min(state.failures, 10));
  return state.waiting.length >= BATCH ? 0 : EVERY_MS;
}

/** Sends one batch. False: try again later. */
async function sendOne(state: State): Promise<boolean> {
  const { events } = state;
  const batch = state.waiting.slice(0, BATCH);
  const { taken, error, isFinal } = await send(state, batch);
  if (error !== null && state.failures === 0) events.emit({ type: 'traceCollectorAway', error });
  if (error === null && state.failures > 0) events.emit({ type: 'traceCollectorBack' });
  state.failures = error === null ? 0 : state.failures + 1;
  if (error !== null && !isFinal) return false;
  state.waiting = state.waiting.slice(batch.length);
  if (taken > 0) events.emit({ type: 'spansExported', count: taken });
  const refused = batch.length - taken;
  if (refused > 0) events.emit({ type: 'spansDropped', reason: 'refused', count: refused });
  return error === null;
}

async function stop(state: State, loop: Loop): Promise<void> {
  const { stopLimitMs } = state;
  const timer = setTimeout(() => state.abort.abort(), stopLimitMs);
  const drained = (async () => {
    await loop.stop();
    while (state.waiting.length > 0 && (await sendOne(state)));
  })();
  await within(drained, stopLimitMs);
  clearTimeout(timer);
  const count = state.waiting.length;
  state.waiting = [];
  if (count > 0) state.events.emit({ type: 'spansDropped', reason: 'stopped', count });
}

interface Sent {
  /** How many spans the collector has taken. */
  taken: number;
  error: string | null;
  /** The collector would not take them later either. */
  isFinal: boolean;
}

const LATER = new Set([429, 502, 503, 504]);

/** Never throws. */
async function send({ traces, version, host, instanceId, abort }: State, batch: readonly Span[]): Promise<Sent> {
  const { url, headers, timeoutMs } = traces;
  const ofProcess = { 'service.version': version, 'host.name': host, 'service.instance.id': instanceId() };
  const resource = { version, attributes: { ...ofProcess, ...traces.attributes } };
  try {
    const { statusCode, body } = await request(url, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: exportRequest(batch, resource),
      signal: AbortSignal.any([abort.signal, AbortSignal.timeout(timeoutMs)]),
    });
    const text = await body.text();
    const isTaken = statusCode >= 200 && statusCode < 300;
    if (!isTaken) return { taken: 0, error: `it answered ${statusCode}`, isFinal: !LATER.has(statusCode) };
    return { taken: Math.max(0, batch.length - rejectedOf(text)), error: null, isFinal: true };
  } catch (error) {
    return { taken: 0, error: reasonOf(error), isFinal: false };
  }
}

/** A collector that takes only some of the spans says how many it does not take. */
function rejectedOf(answer: string): number {
  try {
    const { partialSuccess } = JSON.parse(answer) as { partialSuccess?: { rejectedSpans?: unknown } };
    return Number(partialSuccess?.rejectedSpans ?? 0) || 0;
  } catch {
    return 0;
  }
}

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
function exportRequest(spans: readonly Span[], { attributes, version }: Resource): string {
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
