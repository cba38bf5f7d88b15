import { expect, test } from 'vitest';
import type { FirelockEvent } from '../../../src/core/events.ts';
import { notSent } from '../../../src/core/runs/attempts/outcome.ts';
import { type Span, createTraces, spanOf } from '../../../src/observability/traces.ts';
import { systemClock } from '../../../src/runtime/clock.ts';
import { createEventBus } from '../../../src/runtime/event-bus.ts';
import { until } from '../../support/until.ts';
import { attributesOf, startCollector } from './collector.ts';
import { targetAt } from '../../support/targets.ts';

type AttemptEnded = Extract<FirelockEvent, { type: 'attemptEnded' }>;

const ENDED: AttemptEnded = {
  type: 'attemptEnded',
  target: 'http',
  runId: '0192f0c4-1c00-7abc-8def-0123456789ab',
  attempt: 1,
  outcome: 'accepted',
  durationMs: 12.5,
  startedAt: Date.UTC(2026, 10, 20, 9),
  spanId: '00f067aa0ba902b7',
  scheduleId: 'nightly',
  trigger: 'schedule',
  recoveries: 0,
  to: targetAt('https://jobs.example.org/hooks/s3cret?token=s3cret', {
    headers: { authorization: 's3cret' },
  }),
  result: { kind: 'accepted', statusCode: 202, body: 's3cret', executionId: null },
};

test('an attempt is a span of its run, with times to the nanosecond and without secrets', () => {
  const span = spanOf(ENDED, '00f067aa0ba902b7');
  expect(span).toMatchObject({
    traceId: '0192f0c41c007abc8def0123456789ab',
    spanId: '00f067aa0ba902b7',
    name: 'POST',
    kind: 3,
    startTimeUnixNano: '1795165200000000000',
    endTimeUnixNano: '1795165200012500000',
    status: {},
  });
  expect(attributesOf(span)).toEqual({
    'firelock.run.id': '0192f0c4-1c00-7abc-8def-0123456789ab',
    'firelock.schedule.id': 'nightly',
    'firelock.attempt': '1',
    'firelock.trigger': 'schedule',
    'firelock.recoveries': '0',
    'firelock.outcome': 'accepted',
    'http.request.method': 'POST',
    'http.response.status_code': '202',
    'server.address': 'jobs.example.org',
    'server.port': '443',
    'url.scheme': 'https',
  });
  expect(JSON.stringify(span)).not.toContain('s3cret');
});

test('an attempt that did not succeed is an error that says why', () => {
  const rejected = { kind: 'rejected', statusCode: 422, body: '' } as const;
  const span = spanOf({ ...ENDED, attempt: 3, result: rejected, outcome: 'rejected' }, 'a');
  expect(span.status).toEqual({ code: 2, message: 'the target answered 422' });
  expect(attributesOf(span)).toMatchObject({ 'error.type': '422', 'http.request.resend_count': '2' });
  const unsent = notSent({ kind: 'network', message: 'connect ECONNREFUSED' });
  const refused = spanOf({ ...ENDED, result: unsent, outcome: 'transient', scheduleId: null }, 'a');
  expect(refused.status).toEqual({ code: 2, message: 'connect ECONNREFUSED' });
  expect(attributesOf(refused)).toMatchObject({ 'error.type': 'network' });
  expect(attributesOf(refused)).not.toHaveProperty('firelock.schedule.id');
});

test('spans that the collector does not take now wait, and those that it never takes are counted', async () => {
  const { collector, exporter, events, span } = await exporting();
  collector.answer.status = 503;
  exporter.add(span(1));
  await until(() => events.includes('traceCollectorAway') || null);
  collector.answer.status = 200;
  exporter.loop.retry();
  await until(() => events.includes('spansExported') || null);
  expect(events).toEqual(['traceCollectorAway', 'traceCollectorBack', 'spansExported']);
  expect(collector.calls.map(({ spans }) => spans.map(({ name }) => name))).toEqual([['1'], ['1']]);
  expect(collector.calls[0]).toMatchObject({
    path: '/v1/traces',
    headers: { 'content-type': 'application/json', 'x-key': 'k' },
    attributes: { 'service.name': 'firelock' },
  });

  collector.answer.body = '{"partialSuccess":{"rejectedSpans":"1"}}';
  exporter.add(span(2));
  exporter.add(span(3));
  exporter.loop.retry();
  await until(() => events.length > 3 || null);
  collector.answer.status = 400;
  exporter.add(span(4));
  exporter.loop.retry();
  await until(() => events.length > 6 || null);
  expect(events.slice(3)).toEqual(['spansExported', 'refused 1', 'traceCollectorAway', 'refused 1']);
  await exporter.stop();
});

test('spans beyond the limit are dropped, and waiting ones are sent when the daemon stops', async () => {
  const { collector, exporter, events, span } = await exporting({ started: false });
  for (let i = 0; i < 20_005; i += 1) exporter.add(span(i));
  void exporter.loop.start();
  await until(() => (events.includes('full 5') ? true : null));
  await exporter.stop();
  const names = collector.spans().map(({ name }) => Number(name));
  expect(names).toEqual(Array.from({ length: 20_000 }, (_, i) => i));
});

test('a collector that never answers does not delay the end', async () => {
  const { exporter, events, span } = await exporting({ url: 'http://127.0.0.1:1/v1/traces' });
  exporter.add(span(1));
  await exporter.stop();
  expect(events.at(-1)).toBe('stopped 1');
});

async function exporting({ started = true, url = '' } = {}) {
  const collector = await startCollector();
  const bus = createEventBus();
  const events: string[] = [];
  bus.subscribe((event) => {
    if (event.type === 'spansDropped') events.push(`${event.reason} ${event.count}`);
    else if (event.type !== 'loopPassed') events.push(event.type);
  });
  const exporter = createTraces({
    traces: {
      ...{ url: url || `${collector.url}/v1/traces`, headers: { 'x-key': 'k' }, timeoutMs: 10_000 },
      attributes: { 'service.name': 'firelock' },
    },
    ...{
      clock: systemClock,
      events: bus,
      version: '0',
      host: 'here',
      instanceId: () => 'one',
      stopLimitMs: 60_000,
    },
  });
  if (started) void exporter.loop.start();
  const span = (name: number): Span => ({ ...spanOf(ENDED, 'a'), name: String(name) });
  return { collector, exporter, events, span };
}
