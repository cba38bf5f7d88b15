import { request } from 'undici';
import type { Clock } from '../../runtime/clock.ts';
import type { EventBus } from '../../runtime/event-bus.ts';
import { type Loop, createLoop } from '../../runtime/loop/loop.ts';
import { reasonOf } from '../../runtime/reason.ts';
import { within } from '../../runtime/within.ts';
import { type Resource, type Span, exportRequest } from './otlp.ts';

interface SpanExporterDeps {
  url: string;
  headers: Readonly<Record<string, string>>;
  timeoutMs: number;
  resource: () => Resource;
  clock: Clock;
  events: EventBus;
}

interface SpanExporter {
  add(span: Span): void;
  loop: Loop;
  /** Sends the waiting spans if the collector takes them within this time; drops the rest. */
  stop(limitMs: number): Promise<void>;
}

/** The most spans that wait: some 10 MB. The spans of 10,000 fires within a second fit. */
const MAX_WAITING = 20_000;
const BATCH = 1_000;
const EVERY_MS = 1_000;
const MAX_BACKOFF_MS = 30_000;

interface State extends SpanExporterDeps {
  waiting: Span[];
  /** Spans that were dropped for want of room since the last pass. */
  unheardDrops: number;
  /** Calls in a row. */
  failures: number;
  abort: AbortController;
}

/** Sends spans in batches, beside all other work: adding a span never waits. One call is under way at a time. */
export function createSpanExporter(deps: SpanExporterDeps): SpanExporter {
  const { events, clock } = deps;
  const state: State = { ...deps, waiting: [], unheardDrops: 0, failures: 0, abort: new AbortController() };
  const loop = createLoop({ name: 'traces', clock, events, body: () => pass(state) });
  return {
    loop,
    add: (span) => {
      if (state.waiting.length >= MAX_WAITING) state.unheardDrops += 1;
      else state.waiting.push(span);
    },
    stop: (limitMs) => stop(state, loop, limitMs),
  };
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
  const { taken, error, isFinal } = await send(state, batch, state.abort.signal);
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

async function stop(state: State, loop: Loop, limitMs: number): Promise<void> {
  const timer = setTimeout(() => state.abort.abort(), limitMs);
  const drained = (async () => {
    await loop.stop();
    while (state.waiting.length > 0 && (await sendOne(state)));
  })();
  await within(drained, limitMs);
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
async function send(
  { url, headers, timeoutMs, resource }: SpanExporterDeps,
  batch: readonly Span[],
  signal: AbortSignal,
): Promise<Sent> {
  try {
    const { statusCode, body } = await request(url, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: exportRequest(batch, resource()),
      signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
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
