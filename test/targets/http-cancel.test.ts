import { describe, expect, test } from 'vitest';
import type { HttpCall } from '../../src/core/schedules/schedule.ts';
import { attemptOf, httpTarget, never, receive, receiveTcp } from './receivers.ts';
import { targetAt } from '../support/targets.ts';

const at = (url: string, rest: Partial<HttpCall<string>> = {}) =>
  targetAt('http://127.0.0.1:1/never-sent-to', { cancel: { url, method: 'POST', headers: {}, ...rest } });

const cancel = (url: string, timeoutSeconds = 20) => httpTarget().cancel(at(url), attemptOf({ timeoutSeconds }), never);

test('only a target that has a cancel call can be called', async () => {
  const kind = httpTarget();
  expect(kind.hasCancel(at('http://127.0.0.1/'))).toBe(true);
  expect(kind.hasCancel(targetAt('http://127.0.0.1/'))).toBe(false);
  expect(await kind.cancel(targetAt('http://127.0.0.1/'), attemptOf(), never)).toMatchObject({
    kind: 'network',
  });
});

test.each(['POST', 'GET', 'DELETE', 'PUT'] as const)(
  'a cancel call by %s names the run as its delivery does, and carries no body',
  async (method) => {
    const { url, arrivals } = await receive((_, response) => response.writeHead(202).end());
    const target = at(`${url}/jobs/{{runName}}?id={{runId}}&n={{attempt}}`, {
      method,
      headers: { 'X-Key': 'k-{{scheduleId}}', 'Webhook-Id': 'x' },
    });
    const attempt = attemptOf({ attempt: 2, payload: '{"secret":1}' });
    expect(await httpTarget().cancel(target, attempt, never)).toBeNull();
    const { runId } = attempt;
    expect(arrivals).toHaveLength(1);
    expect(arrivals[0]).toMatchObject({
      method,
      url: `/jobs/nightly%402026-11-20T09%3A00%3A00.000Z?id=${runId}&n=2`,
      body: '',
      headers: {
        'webhook-id': runId,
        'idempotency-key': runId,
        'ce-id': runId,
        'user-agent': 'firelock/1.2.3',
        'x-key': 'k-nightly',
      },
    });
    expect(arrivals[0]?.headers['content-type']).toBeUndefined();
  },
);

describe('a cancel call that is refused gives the reason, and is not repeated', () => {
  test.each([302, 404, 409, 429, 500])('%d', async (statusCode) => {
    const { url, arrivals } = await receive((_, response) => response.writeHead(statusCode).end());
    expect(await cancel(url)).toEqual({
      kind: 'http',
      message: `the target answered ${statusCode}`,
      statusCode,
    });
    expect(arrivals).toHaveLength(1);
  });

  test.each([
    ['silence', () => receiveTcp(() => undefined), 'timeout'],
    ['a reset', () => receiveTcp((socket) => socket.once('data', () => socket.resetAndDestroy())), 'network'],
    ['a refused port', () => Promise.resolve('http://127.0.0.1:1/'), 'network'],
    ['a URL that is none', () => Promise.resolve('ftp://127.0.0.1/'), 'network'],
  ])('%s', async (_, server, kind) => {
    expect(await cancel(await server(), 0.5)).toMatchObject({ kind });
  });

  test('a header that cannot be sent', async () => {
    const { url, arrivals } = await receive();
    const fault = await httpTarget().cancel(at(url, { headers: { 'x-a': 'a\nb' } }), attemptOf(), never);
    expect(fault).toMatchObject({ kind: 'network' });
    expect(arrivals).toEqual([]);
  });

  test('a daemon that stops', async () => {
    const arrived = Promise.withResolvers<unknown>();
    const { url } = await receive(() => arrived.resolve(undefined));
    const stop = new AbortController();
    const kind = httpTarget();
    const fault = kind.cancel(at(url), attemptOf(), stop.signal);
    await arrived.promise;
    stop.abort();
    expect(await fault).toMatchObject({ kind: 'network' });
    expect(await kind.cancel(at(url), attemptOf(), stop.signal)).toMatchObject({ kind: 'network' });
  });
});
