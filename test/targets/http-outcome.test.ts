import { createServer } from 'node:http';
import { describe, expect, test } from 'vitest';
import { settableTimers } from '../support/clocks.ts';
import { targetAt } from '../support/targets.ts';
import { answerWith, attemptOf, httpTarget, listen, never, receive, receiveTcp } from './receivers.ts';

function deliverTo(url: string) {
  return httpTarget().deliver(targetAt(url), attemptOf(), never);
}

describe('a whole answer', () => {
  test.each([200, 201, 202, 204, 299])('%d is accepted', async (statusCode) => {
    const { url } = await receive((_, response) => response.writeHead(statusCode).end());
    expect(await deliverTo(url)).toEqual({ kind: 'accepted', statusCode, body: '', executionId: null });
  });

  test.each([300, 301, 302, 304, 307, 400, 401, 404, 409, 410, 422, 451])('%d is final', async (statusCode) => {
    const { url } = await receive((_, response) => response.writeHead(statusCode, { 'content-length': 0 }).end());
    expect(await deliverTo(url)).toEqual({ kind: 'rejected', statusCode, body: '' });
  });

  test.each([408, 425, 429, 500, 502, 503, 504, 599])('%d means later', async (statusCode) => {
    const { url } = await receive((_, response) => response.writeHead(statusCode).end('busy'));
    expect(await deliverTo(url)).toEqual({
      kind: 'transient',
      error: { kind: 'http', message: `the target answered ${statusCode}`, statusCode },
      statusCode,
      body: 'busy',
      retryAfterSeconds: null,
      senderStopped: false,
    });
  });

  test.each([
    ['7', 7],
    ['Fri, 01 Jan 1999 00:00:00 GMT', 0],
    ['soon', null],
  ])('Retry-After: %s is passed on as %j', async (value, retryAfterSeconds) => {
    const { url } = await receive((_, response) => response.writeHead(503, { 'retry-after': value }).end());
    expect(await deliverTo(url)).toMatchObject({ kind: 'transient', retryAfterSeconds });
  });

  test('a Retry-After date that lies ahead is a wait', async () => {
    const date = new Date(Date.now() + 3_600_000).toUTCString();
    const { url } = await receive((_, response) => response.writeHead(429, { 'retry-after': date }).end());
    const outcome = await deliverTo(url);
    const seconds = outcome.kind === 'transient' ? (outcome.retryAfterSeconds ?? 0) : 0;
    expect(seconds).toBeGreaterThan(3000);
    expect(seconds).toBeLessThanOrEqual(3600);
  });

  test('a redirect is not followed', async () => {
    const { url, arrivals } = await receive((_, response) => response.writeHead(307, { location: '/other' }).end());
    expect(await deliverTo(url)).toMatchObject({ kind: 'rejected', statusCode: 307 });
    expect(arrivals).toHaveLength(1);
  });

  test('an interim answer is not the answer', async () => {
    const url = await answerWith(
      'HTTP/1.1 103 Early Hints\r\nlocation: /early\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n',
    );
    expect(await deliverTo(url)).toEqual({ kind: 'accepted', statusCode: 200, body: '', executionId: null });
  });

  test('an answer that ends with the connection is complete', async () => {
    const url = await answerWith('HTTP/1.1 200 OK\r\n\r\nall of it', (socket) => socket.end());
    expect(await deliverTo(url)).toMatchObject({ kind: 'accepted', body: 'all of it' });
  });
});

describe('the execution id', () => {
  test.each([
    ['the field of a JSON body', '{"executionId":"e-1","x":1}', '/l', 'e-1'],
    ['the field behind a byte order mark', '\ufeff {"executionId":"e-1"}', '/l', 'e-1'],
    ['else the Location header, whole', '{"id":1}', 'https://x.test/e?1#2', 'https://x.test/e?1#2'],
    ['not a field that is no string', '{"executionId":5}', '/l', '/l'],
    ['not an empty one', '{"executionId":""}', '/l', '/l'],
    ['not what is no object', '["executionId"]', '/l', '/l'],
    ['not broken JSON', '{"executionId":"e-1"', '/l', '/l'],
    ['cut at 1024 characters', `{"executionId":"${'e'.repeat(2000)}"}`, '/l', 'e'.repeat(1024)],
    ['without NUL or half a character', '{"executionId":"a\\u0000b\\ud800"}', '/l', 'a\ufffdb\ufffd'],
  ])('is %s', async (_, body, location, executionId) => {
    const { url } = await receive((_request, response) => response.writeHead(202, { location }).end(body));
    expect(await deliverTo(url)).toMatchObject({ kind: 'accepted', executionId });
  });
});

describe('the body that is kept', () => {
  test.each([
    ['cut at 4096 bytes', 'x'.repeat(5000), 'x'.repeat(4096)],
    ['not cut within a character', `x${'\u20ac'.repeat(2000)}`, `x${'\u20ac'.repeat(1365)}`],
    ['without NUL', 'a\0b', 'a\ufffdb'],
    ['with invalid bytes replaced', Buffer.from([0x61, 0xff, 0xc3, 0x28]), 'a\ufffd\ufffd('],
    ['at most 4096 bytes after that, too', Buffer.alloc(4000, 0xff), '\ufffd'.repeat(1365)],
  ])('is %s', async (_, sent, body) => {
    const { url } = await receive((_request, response) => response.end(sent));
    expect(await deliverTo(url)).toMatchObject({ kind: 'accepted', body });
  });
});

describe('before anything was written', () => {
  test('a refused port is transient', async () => {
    const server = createServer();
    const url = await listen(server);
    await new Promise((resolve) => server.close(resolve));
    const outcome = await deliverTo(url);
    expect(outcome).toMatchObject({
      kind: 'transient',
      statusCode: null,
      body: null,
      error: { kind: 'network' },
    });
    expect(outcome).toHaveProperty('error.message', expect.stringContaining('connection failed: connect ECONNREFUSED'));
  });

  test('a name that does not resolve is transient', async () => {
    const outcome = await deliverTo('http://nowhere.invalid/');
    expect(outcome).toMatchObject({ kind: 'transient', error: { kind: 'network' } });
    expect(outcome).toHaveProperty('error.message', expect.stringContaining('name not resolved'));
  });

  test('a deadline while waiting for a free connection is transient', async () => {
    const { pass } = settableTimers();
    const arrived = Promise.withResolvers<unknown>();
    const url = await receiveTcp((socket) => socket.once('data', arrived.resolve));
    const kind = httpTarget(1);
    const first = kind.deliver(targetAt(url), attemptOf({ timeoutSeconds: 9 }), never);
    const second = kind.deliver(targetAt(url), attemptOf({ timeoutSeconds: 3 }), never);
    await arrived.promise;
    pass(3);
    expect(await second).toMatchObject({ kind: 'transient', error: { kind: 'timeout' } });
    pass(6);
    expect(await first).toMatchObject({ kind: 'unknown', error: { kind: 'timeout' } });
  });

  test.each([
    ['no url', {}],
    ['ftp://127.0.0.1/', {}],
    ['http://127.0.0.1/', { 'x-a': 'a\r\nb' }],
    ['http://127.0.0.1/', { 'a b': 'x' }],
  ])('what cannot be built (%s %j) is transient', async (url, headers) => {
    const outcome = await httpTarget().deliver(targetAt(url, { headers }), attemptOf(), never);
    expect(outcome).toMatchObject({ kind: 'transient', error: { kind: 'network' } });
    expect(outcome).toHaveProperty('error.message', expect.stringMatching(/^the request cannot be built: /));
  });
});

describe('after the request was written, without a whole answer', () => {
  const cut = 'HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf';

  test.each([
    ['silence', (arrived: () => void) => receiveTcp((socket) => socket.once('data', arrived))],
    ['an answer that drips', dripping],
    ['headers that drip', (arrived: () => void) => answerWith('HTTP/1.1 200 OK\r\nx-a', arrived)],
    [
      'an upgrade nobody asked for',
      (arrived: () => void) => answerWith('HTTP/1.1 101 X\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n', arrived),
    ],
  ])('%s leaves the outcome unknown at the deadline', async (_, server) => {
    const { pass } = settableTimers();
    const arrived = Promise.withResolvers<undefined>();
    const outcome = deliverTo(await server(() => arrived.resolve(undefined)));
    await arrived.promise;
    pass(attemptOf().timeoutSeconds);
    expect(await outcome).toMatchObject({
      kind: 'unknown',
      error: { kind: 'timeout' },
      senderStopped: false,
    });
  });

  test.each([
    ['a close', () => receiveTcp((socket) => socket.once('data', () => socket.end()))],
    ['a reset', () => receiveTcp((socket) => socket.once('data', () => socket.resetAndDestroy()))],
    ['an answer cut short by a close', () => answerWith(cut, (socket) => socket.end())],
    ['an answer cut short by a reset', () => answerWith(cut, (socket) => socket.resetAndDestroy())],
  ])('%s leaves the outcome unknown', async (_, server) => {
    settableTimers();
    const outcome = await deliverTo(await server());
    expect(outcome).toMatchObject({ kind: 'unknown', error: { kind: 'network' }, senderStopped: false });
  });
});

function dripping(arrived: () => void): Promise<string> {
  return answerWith('HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n', (socket) => {
    const timer = setInterval(() => socket.write('x', arrived), 50);
    socket.on('close', () => clearInterval(timer));
  });
}
