import { expect, test } from 'vitest';
import type { Connection } from '../../src/core/connections/connection.ts';
import { HTTP_METHODS } from '../../src/core/schedules/schedule.ts';
import { attemptOf, httpTarget, never, receive } from './receivers.ts';
import { targetAt } from '../support/targets.ts';

test('the body carries the run, and the payload byte for byte', async () => {
  const { url, arrivals } = await receive();
  const payload = '{"a":1e400,"b":9007199254740993,  "c":1,\n"d":"\\u0000 \u20ac"}';
  await httpTarget().deliver(targetAt(url), attemptOf({ payload }), never);
  expect(arrivals[0]?.body).toBe(
    '{"runId":"0192f0c4-1c00-7abc-8def-0123456789ab","runName":"nightly@2026-11-20T09:00:00.000Z"' +
      ',"scheduleId":"nightly","scheduledFor":"2026-11-20T09:00:00.000Z","trigger":"schedule","attempt":1' +
      `,"recovery":null,"payload":${payload}}`,
  );
});

test('a one-off run that was recovered says so', async () => {
  const { url, arrivals } = await receive();
  const recovery = { recoveries: 2, recoveredAt: Date.UTC(2026, 10, 20, 9, 1) };
  const oneOff = { runName: null, scheduleId: null, trigger: 'api', attempt: 4, recovery } as const;
  await httpTarget().deliver(targetAt(url), attemptOf(oneOff), never);
  expect(JSON.parse(arrivals[0]?.body ?? '')).toEqual({
    runId: '0192f0c4-1c00-7abc-8def-0123456789ab',
    runName: null,
    scheduleId: null,
    scheduledFor: '2026-11-20T09:00:00.000Z',
    trigger: 'api',
    attempt: 4,
    recovery: { recoveries: 2, recoveredAt: '2026-11-20T09:01:00.000Z' },
    payload: null,
  });
  expect(arrivals[0]?.headers['ce-source']).toBe('/runs');
});

test('the headers are those of the contract, and no others', async () => {
  const { url, arrivals } = await receive();
  const before = Math.floor(Date.now() / 1000);
  await httpTarget().deliver(targetAt(url), attemptOf(), never);
  const { 'webhook-timestamp': timestamp, traceparent, ...headers } = arrivals[0]?.headers ?? {};
  expect(headers).toEqual({
    host: url.slice('http://'.length),
    connection: 'keep-alive',
    'content-length': String(Buffer.byteLength(arrivals[0]?.body ?? '')),
    'content-type': 'application/json',
    'user-agent': 'firelock/1.2.3',
    'webhook-id': '0192f0c4-1c00-7abc-8def-0123456789ab',
    'idempotency-key': '0192f0c4-1c00-7abc-8def-0123456789ab',
    'ce-specversion': '1.0',
    'ce-id': '0192f0c4-1c00-7abc-8def-0123456789ab',
    'ce-source': '/schedules/nightly',
    'ce-type': 'firelock.run',
    'ce-time': '2026-11-20T09:00:00.000Z',
  });
  expect(Number(timestamp)).toBeGreaterThanOrEqual(before);
  expect(Number(timestamp)).toBeLessThanOrEqual(Date.now() / 1000);
  expect(traceparent).toMatch(/^00-0192f0c41c007abc8def0123456789ab-[0-9a-f]{16}-01$/);
});

test('User-Agent is that of the target, or of the connection, which may name the Host as well', async () => {
  const { url, arrivals } = await receive();
  const kind = httpTarget();
  const call = async (headers: Record<string, string>, ofConnection: Record<string, string> | null) => {
    const connection: Connection<string> | null = ofConnection && {
      ...{ id: 'c', uid: '01a21d19-9142-7001-99c9-05d89d65db47', description: null, url, urlSeal: null },
      ...{ auth: null, tls: null, version: 1, edition: null, updatedAt: 0, placedAt: 0 },
      headers: ofConnection,
    };
    const target = { ...targetAt(connection === null ? url : '/x'), headers };
    await kind.deliver(target, attemptOf({ connection }), never);
    return arrivals.at(-1)?.headers;
  };
  expect(await call({ 'User-Agent': 'jobs/{{attempt}}' }, null)).toMatchObject({ 'user-agent': 'jobs/1' });
  const set = { 'User-Agent': 'theirs', Host: 'jobs.example:8443', 'Content-Type': 'text/plain' };
  expect(await call({ 'User-Agent': 'mine' }, set)).toMatchObject({
    'user-agent': 'theirs',
    host: 'jobs.example:8443',
    'content-type': 'application/json',
  });
});

test('each attempt is a span of its own', async () => {
  const { url, arrivals } = await receive();
  const kind = httpTarget();
  await kind.deliver(targetAt(url), attemptOf(), never);
  await kind.deliver(targetAt(url), attemptOf({ attempt: 2 }), never);
  const [first, second] = arrivals.map((arrival) => arrival.headers['traceparent']);
  expect(first).not.toBe(second);
});

test('templates are filled in, encoded in the URL and unchanged in headers', async () => {
  const { url, arrivals } = await receive();
  const target = targetAt(`${url}/run/{{runName}}?n={{attempt}}&s={{scheduleId}}#{{runId}}`, {
    headers: { 'X-Run': '{{runName}} ({{scheduledFor}})', 'content-type': 'text/x-{{scheduleId}}' },
  });
  await httpTarget().deliver(target, attemptOf({ attempt: 7, scheduleId: null }), never);
  expect(arrivals[0]?.url).toBe('/run/nightly%402026-11-20T09%3A00%3A00.000Z?n=7&s=');
  expect(arrivals[0]?.headers).toMatchObject({
    'x-run': 'nightly@2026-11-20T09:00:00.000Z (2026-11-20T09:00:00.000Z)',
    'content-type': 'text/x-',
  });
});

test('headers stored by another program override none of ours', async () => {
  const { url, arrivals } = await receive();
  const headers = {
    'Webhook-Id': 'x',
    'IDEMPOTENCY-KEY': 'x',
    Host: 'x',
    'content-length': '1',
  };
  const outcome = await httpTarget().deliver(targetAt(url, { headers }), attemptOf(), never);
  expect(outcome.kind).toBe('accepted');
  expect(arrivals[0]?.headers).toMatchObject({
    'webhook-id': attemptOf().runId,
    'idempotency-key': attemptOf().runId,
    host: url.slice('http://'.length),
  });
});

test.each(HTTP_METHODS)('%s arrives, with a body unless it carries none', async (method) => {
  const { url, arrivals } = await receive();
  const outcome = await httpTarget().deliver(targetAt(url, { method }), attemptOf({ payload: '1' }), never);
  expect(outcome.kind).toBe('accepted');
  expect(arrivals[0]?.method).toBe(method);
  const bodiless = method === 'GET' || method === 'HEAD';
  expect(arrivals[0]?.body === '').toBe(bodiless);
  expect(arrivals[0]?.headers['content-type']).toBe(bodiless ? undefined : 'application/json');
});

test('lanes are origins', () => {
  const kind = httpTarget();
  expect(kind.laneOf(targetAt('http://Example.test:80/a/{{runId}}?x'))).toBe('http://example.test');
  expect(kind.laneOf(targetAt('https://[::1]:8443/'))).toBe('https://[::1]:8443');
  expect(kind.laneOf(targetAt('no url'))).toBe('no url');
});
