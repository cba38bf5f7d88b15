// @module-tag long
import { expect, test } from 'vitest';
import { attributesOf, startCollector } from '../observability/traces/collector.ts';
import { daemonHere } from '../support/daemon-here.ts';
import { createMigratedDatabase } from '../support/postgres/migrated-database.ts';
import { startReceiver } from '../support/receiver.ts';
import { until } from '../support/until.ts';

test('each attempt is a span, and the target gets that span; without a collector fires go on', async () => {
  const database = await createMigratedDatabase();
  const collector = await startCollector();
  const receiver = await startReceiver(({ body }, response) => {
    response.statusCode = body.attempt === 1 ? 503 : 200;
    response.end('{}');
  });
  try {
    const daemon = await daemonHere(database.url, {
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      FIRELOCK_SHUTDOWN_SECONDS: '60',
    });
    const fired = await daemon.call('POST', '/api/v1/runs', {
      target: { type: 'http', url: `${receiver.url}/hook?token=s3cret` },
      retry: { minBackoffSeconds: 1, maxBackoffSeconds: 1 },
    });
    const { id } = fired.body as { id: string };
    await receiver.arrived(2);
    await daemon.stop();

    const spans = collector.spans();
    expect(spans.map((span) => `00-${span.traceId}-${span.spanId}-01`)).toEqual(
      receiver.arrivals.map(({ headers }) => headers['traceparent']),
    );
    expect(spans.map((span) => span.traceId)).toEqual([id, id].map((run) => run.replaceAll('-', '')));
    const [first = {}, second = {}] = spans.map(attributesOf);
    expect(first).toMatchObject({
      'firelock.run.id': id,
      'firelock.attempt': '1',
      'firelock.outcome': 'transient',
      'http.response.status_code': '503',
    });
    expect(second).toMatchObject({ 'firelock.attempt': '2', 'firelock.outcome': 'accepted' });
    expect(second['firelock.trigger']).toBe(first['firelock.trigger']);
    expect(collector.calls[0]?.attributes).toMatchObject({ 'service.name': 'firelock' });
    expect(JSON.stringify(collector.calls)).not.toContain('s3cret');

    const alone = await daemonHere(database.url, { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' });
    await alone.call('POST', '/api/v1/runs', { target: { type: 'http', url: receiver.url } });
    await alone.logged(/the trace collector does not accept spans/);
    const metrics = await until(async () => {
      const text = String((await alone.call('GET', '/metrics')).body);
      return /^firelock_runs_succeeded_total \d/m.test(text) ? text : null;
    });
    expect(metrics).toMatch(/^firelock_spans_exported_total 0$/m);
    await alone.stop();
  } finally {
    await receiver.close();
    await database.drop();
  }
});
