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

/** Sends spans in batches, beside all other work: adding a span never waits. One call is under way at a time. */
// eslint-disable-next-line max-lines-per-function -- a closure: its functions share its state, and are short
export function createSpanExporter(deps: SpanExporterDeps): SpanExporter {
  const { events, clock } = deps;
  let waiting: Span[] = [];
  let unheardDrops = 0;
  let failures = 0;
  const abort = new AbortController();

  /** False: try again later. */
  async function sendOne(): Promise<boolean> {
    const batch = waiting.slice(0, BATCH);
    const { taken, error, isFinal } = await send(deps, batch, abort.signal);
    if (error !== null && failures === 0) events.emit({ type: 'traceCollectorAway', error });
    if (error === null && failures > 0) events.emit({ type: 'traceCollectorBack' });
    failures = error === null ? 0 : failures + 1;
    if (error !== null && !isFinal) return false;
    waiting = waiting.slice(batch.length);
    if (taken > 0) events.emit({ type: 'spansExported', count: taken });
    const refused = batch.length - taken;
    if (refused > 0) events.emit({ type: 'spansDropped', reason: 'refused', count: refused });
    return error === null;
  }

  const loop = createLoop({
    name: 'traces',
    clock,
    events,
    body: async () => {
      if (unheardDrops > 0) events.emit({ type: 'spansDropped', reason: 'full', count: unheardDrops });
      unheardDrops = 0;
      if (waiting.length > 0 && !(await sendOne()))
        return Math.min(MAX_BACKOFF_MS, EVERY_MS * 2 ** Math.min(failures, 10));
      return waiting.length >= BATCH ? 0 : EVERY_MS;
    },
  });

  return {
    loop,
    add: (span) => {
      if (waiting.length >= MAX_WAITING) unheardDrops += 1;
      else waiting.push(span);
    },
    stop: async (limitMs) => {
      const timer = setTimeout(() => abort.abort(), limitMs);
      const drained = (async () => {
        await loop.stop();
        while (waiting.length > 0 && (await sendOne()));
      })();
      await within(drained, limitMs);
      clearTimeout(timer);
      const count = waiting.length;
      waiting = [];
      if (count > 0) events.emit({ type: 'spansDropped', reason: 'stopped', count });
    },
  };
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
