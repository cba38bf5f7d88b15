import { describe, expect, test } from 'vitest';
import type { HttpCall } from '../../src/core/schedules/schedule.ts';
import type { TargetKind } from '../../src/targets/target.ts';
import { answerWith, attemptOf, httpTarget, never, receive, receiveTcp } from './receivers.ts';
import { targetAt } from '../support/targets.ts';

const at = (url: string, rest: Partial<HttpCall<string>> = {}) =>
  targetAt('http://127.0.0.1:1/never-sent-to', { lookup: { url, method: 'GET', headers: {}, ...rest } });

function ask(url: string, timeoutSeconds = 20, kind: TargetKind = httpTarget()) {
  return kind.lookup(at(url), attemptOf({ timeoutSeconds }), never);
}

test('only a target that has a lookup can be asked', async () => {
  const kind = httpTarget();
  expect(kind.hasLookup(at('http://127.0.0.1/'))).toBe(true);
  expect(kind.hasLookup(targetAt('http://127.0.0.1/'))).toBe(false);
  expect(await kind.lookup(targetAt('http://127.0.0.1/'), attemptOf(), never)).toMatchObject({
    kind: 'unclear',
  });
});

test('a lookup names the run as its delivery does, and carries no body', async () => {
  const { url, arrivals } = await receive();
  const target = at(`${url}/runs/{{runName}}?id={{runId}}&n={{attempt}}`, {
    headers: { 'X-Key': 'k-{{scheduleId}}', 'Webhook-Id': 'x' },
  });
  await httpTarget().lookup(target, attemptOf({ attempt: 3, payload: '{"secret":1}' }), never);
  const { runId } = attemptOf();
  expect(arrivals).toHaveLength(1);
  expect(arrivals[0]).toMatchObject({
    method: 'GET',
    url: `/runs/nightly%402026-11-20T09%3A00%3A00.000Z?id=${runId}&n=3`,
    body: '',
    headers: {
      'webhook-id': runId,
      'idempotency-key': runId,
      'ce-id': runId,
      'user-agent': 'firelock/1.2.3',
      'x-key': 'k-nightly',
    },
  });
  expect(arrivals[0]?.headers['traceparent']).toMatch(/^00-0192f0c41c007abc8def0123456789ab-/);
  expect(arrivals[0]?.headers['content-type']).toBeUndefined();
});

test.each(['HEAD', 'POST', 'PUT'] as const)('a lookup by %s has no body either', async (method) => {
  const { url, arrivals } = await receive();
  const answer = await httpTarget().lookup(at(url, { method }), attemptOf({ payload: '1' }), never);
  expect(answer).toMatchObject({ kind: 'arrived' });
  expect(arrivals[0]).toMatchObject({ method, body: '' });
});

describe('a whole answer', () => {
  test.each([
    [200, '{"executionId":"e-1"}', '/l', 'e-1'],
    [202, '{"phase":"running"}', '/executions/7', '/executions/7'],
    [204, '', '', null],
  ])('%d says that it arrived, with what there is to keep', async (statusCode, body, location, executionId) => {
    const { url } = await receive((_, response) => response.writeHead(statusCode, { location }).end(body));
    expect(await ask(url)).toEqual({ kind: 'arrived', statusCode, body, executionId });
  });

  test.each(['running', 'succeeded', 'failed'])('is believed when its status is %s', async (status) => {
    const long = JSON.stringify({ log: 'x'.repeat(8_000), status });
    for (const body of [`{"status":"${status}"}`, ` \n{"executionId":"e","status":"${status}"}`, long]) {
      const { url } = await receive((_, response) => response.end(body));
      expect(await ask(url)).toMatchObject({ kind: 'arrived', reported: status });
    }
  });

  test.each([
    '{"status":"done"}',
    '{"status":null}',
    '{"status":["failed"]}',
    '{"result":{"status":"failed"}}',
    '["failed"]',
    '"failed"',
    'failed',
    '{"status":"failed"',
    '{"status":"Failed"}',
    'null',
    '',
  ])('%s says no more than that it arrived', async (body) => {
    const { url } = await receive((_, response) => response.end(body));
    expect(await ask(url)).toEqual({ kind: 'arrived', statusCode: 200, body, executionId: null });
  });

  test('to a handoff says nothing about the work, whatever its status field contains', async () => {
    const { url } = await receive((_, response) => response.end('{"status":"failed","executionId":"e-1"}'));
    const outcome = await httpTarget().deliver(targetAt(url), attemptOf(), never);
    expect(outcome).toMatchObject({ kind: 'accepted', executionId: 'e-1' });
    expect(outcome).not.toHaveProperty('reported');
  });

  test('404 says that it did not arrive', async () => {
    const { url } = await receive((_, response) => response.writeHead(404).end('no such run'));
    expect(await ask(url)).toEqual({ kind: 'notArrived' });
  });

  test.each([301, 304, 400, 401, 403, 405, 410, 429, 500, 503])('%d says nothing', async (statusCode) => {
    const { url } = await receive((_, response) => response.writeHead(statusCode).end());
    expect(await ask(url)).toEqual({
      kind: 'unclear',
      error: { kind: 'http', message: `lookup: the target answered ${statusCode}`, statusCode },
    });
  });
});

describe('without a whole answer the outcome is unknown', () => {
  test.each([
    ['silence', () => receiveTcp(() => undefined), 'timeout', /no complete answer within 0.5 s/],
    [
      'a 404 that never ends',
      () => answerWith('HTTP/1.1 404 X\r\ncontent-length: 9\r\n\r\nhalf'),
      'timeout',
      /no complete answer/,
    ],
    ['a reset', () => receiveTcp((socket) => socket.once('data', () => socket.resetAndDestroy())), 'network', /./],
    ['a refused port', () => Promise.resolve('http://127.0.0.1:1/'), 'network', /connection failed/],
    ['an unknown name', () => Promise.resolve('http://nowhere.invalid/'), 'network', /name not resolved/],
    ['a URL that is none', () => Promise.resolve('ftp://127.0.0.1/'), 'network', /cannot be built/],
  ])('%s', async (_, server, kind, message) => {
    const answer = await ask(await server(), 0.5);
    expect(answer).toMatchObject({ kind: 'unclear', error: { kind } });
    expect(answer).toHaveProperty('error.message', expect.stringMatching(message));
    expect(answer).toHaveProperty('error.message', expect.stringMatching(/^lookup: /));
  });

  test('a header that cannot be sent', async () => {
    const { url, arrivals } = await receive();
    const answer = await httpTarget().lookup(at(url, { headers: { 'x-a': 'a\nb' } }), attemptOf(), never);
    expect(answer).toMatchObject({ kind: 'unclear', error: { kind: 'network' } });
    expect(arrivals).toEqual([]);
  });

  test('a daemon that stops', async () => {
    const arrived = Promise.withResolvers<unknown>();
    const { url } = await receive(() => arrived.resolve(undefined));
    const stop = new AbortController();
    const kind = httpTarget();
    const answer = kind.lookup(at(url), attemptOf(), stop.signal);
    await arrived.promise;
    stop.abort();
    expect(await answer).toMatchObject({ kind: 'unclear', error: { kind: 'network' } });
    expect(await kind.lookup(at(url), attemptOf(), stop.signal)).toMatchObject({ kind: 'unclear' });
  });

  test('a sender that may no longer ask', async () => {
    const { url, arrivals } = await receive();
    const answer = await httpTarget().lookup(at(url), attemptOf({ mayStart: () => false }), never);
    expect(answer).toMatchObject({ kind: 'unclear', error: { kind: 'network' } });
    expect(arrivals).toEqual([]);
  });
});

test('lookups share kept connections, also those about runs at most once', async () => {
  const { url, arrivals } = await receive((_, response) => response.writeHead(404).end());
  const kind = httpTarget(1);
  for (let i = 0; i < 3; i++) {
    const attempt = attemptOf({ delivery: 'atMostOnce' });
    expect(await kind.lookup(at(url), attempt, never)).toEqual({ kind: 'notArrived' });
  }
  expect(new Set(arrivals.map(({ socket }) => socket)).size).toBe(1);
});
