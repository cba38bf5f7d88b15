import { expect, test } from 'vitest';
import { readConfig } from '../../src/config/config.ts';

const traces = (env: Record<string, string>) => {
  const read = readConfig(env);
  return 'faults' in read ? read.faults : read.config.traces;
};

test('spans go below the endpoint, or to the endpoint for traces, with the headers of both', () => {
  expect(traces({})).toBeUndefined();
  expect(traces({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318/' })).toEqual({
    url: 'http://collector:4318/v1/traces',
    headers: {},
    timeoutMs: 10_000,
    attributes: { 'service.name': 'firelock' },
  });
  expect(
    traces({
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318',
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://other/otlp',
      OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20abc, x-a = 1',
      OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'x-a=2',
      OTEL_EXPORTER_OTLP_TIMEOUT: '500',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=prod,service.name=jobs',
      OTEL_SERVICE_NAME: 'cron',
    }),
  ).toEqual({
    url: 'https://other/otlp',
    headers: { authorization: 'Bearer abc', 'x-a': '2' },
    timeoutMs: 500,
    attributes: { 'service.name': 'cron', 'deployment.environment.name': 'prod' },
  });
});

test.each([{ OTEL_SDK_DISABLED: 'true' }, { OTEL_TRACES_EXPORTER: 'none' }])(
  'are off if %o says so, whatever else is set',
  (off) => {
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318', OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' };
    expect(traces({ ...env, ...off })).toBeUndefined();
  },
);

test('a protocol that firelock does not support is a fault if there is an endpoint', () => {
  expect(traces({ OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' })).toBeUndefined();
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4317', OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' };
  expect(traces(env)).toEqual([
    'OTEL_EXPORTER_OTLP_PROTOCOL is "grpc"; expected: http/json, the only one that firelock speaks',
  ]);
  expect(traces({ ...env, OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/json' })).toMatchObject({ headers: {} });
});

test('all faults are reported at once, and no secret with them', () => {
  const faults = traces({
    OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318',
    OTEL_EXPORTER_OTLP_HEADERS: 's3cret',
    OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'authorization=%E0%A4s3cret',
    OTEL_EXPORTER_OTLP_TIMEOUT: '0',
  });
  expect(faults).toHaveLength(4);
  expect(JSON.stringify(faults)).not.toContain('s3cret');
});
