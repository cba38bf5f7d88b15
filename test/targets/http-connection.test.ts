import { once } from 'node:events';
import type { Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import { ATTACK } from '../support/runner/attack.ts';
import type { TargetKind } from '../../src/targets/target.ts';
import { answerWith, attemptOf, httpTarget, never, receive, receiveTcp } from './receivers.ts';
import { settableTimers } from '../support/clocks.ts';
import { targetAt } from '../support/targets.ts';

const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n';

describe('kept connections', () => {
  test('are used again', async () => {
    const { url, arrivals } = await receive();
    const kind = httpTarget();
    for (let i = 0; i < 5; i++) await kind.deliver(targetAt(url), attemptOf(), never);
    expect(new Set(arrivals.map((arrival) => arrival.socket)).size).toBe(1);
  });

  test('are no more than allowed, and the rest waits in line', async () => {
    const { url, arrivals } = await receive((_, response) => setTimeout(() => response.end(), 20));
    const kind = httpTarget(3);
    const deliveries = Array.from({ length: 12 }, () => kind.deliver(targetAt(url), attemptOf(), never));
    const outcomes = await Promise.all(deliveries);
    expect(outcomes.every((outcome) => outcome.kind === 'accepted')).toBe(true);
    expect(arrivals).toHaveLength(12);
    expect(new Set(arrivals.map((arrival) => arrival.socket)).size).toBe(3);
  });

  test('that the server ends after each answer are opened anew', async () => {
    const { url, arrivals } = await receive((_, response) => response.setHeader('connection', 'close').end());
    const kind = httpTarget(1);
    const deliveries = Array.from({ length: 4 }, () => kind.deliver(targetAt(url), attemptOf(), never));
    expect((await Promise.all(deliveries)).map((outcome) => outcome.kind)).toEqual(Array(4).fill('accepted'));
    expect(new Set(arrivals.map((arrival) => arrival.socket)).size).toBe(4);
  });

  test.each(['end', 'resetAndDestroy'] as const)('closed by the server while idle (%s) cost nothing', async (how) => {
    const { url, arrivals } = await receive();
    const kind = httpTarget(1);
    await kind.deliver(targetAt(url), attemptOf(), never);
    const socket = arrivals[0]?.socket;
    if (socket !== undefined) await once(socket[how](), 'close');
    expect(await kind.deliver(targetAt(url), attemptOf(), never)).toMatchObject({ kind: 'accepted' });
    expect(arrivals).toHaveLength(2);
  });

  test('after a failed one, the line moves on', async () => {
    let connections = 0;
    const url = await receiveTcp((socket) => {
      const first = ++connections === 1;
      socket.on('data', () => (first ? socket.resetAndDestroy() : socket.write(OK)));
    });
    const kind = httpTarget(1);
    const deliveries = Array.from({ length: 3 }, () => kind.deliver(targetAt(url), attemptOf(), never));
    expect((await Promise.all(deliveries)).map((outcome) => outcome.kind)).toEqual(['unknown', 'accepted', 'accepted']);
  });

  test('are closed when the kind is, after the work under way', async () => {
    const { url, arrivals } = await receive((_, response) => setTimeout(() => response.end(), 50));
    const kind = httpTarget();
    const delivery = kind.deliver(targetAt(url), attemptOf(), never);
    await kind.close();
    expect(await delivery).toMatchObject({ kind: 'accepted' });
    const socket = arrivals[0]?.socket;
    if (socket?.destroyed === false) await once(socket, 'close');
    expect(await kind.deliver(targetAt(url), attemptOf(), never)).toMatchObject({ kind: 'transient' });
    expect(arrivals).toHaveLength(1);
  });

  test('reach IPv6 addresses', async () => {
    const { url, arrivals } = await receive(undefined, '::1');
    expect(await httpTarget().deliver(targetAt(url), attemptOf(), never)).toMatchObject({ kind: 'accepted' });
    expect(arrivals[0]?.headers.host).toBe(url.slice('http://'.length));
  });
});

describe('idle connections', { tags: [ATTACK] }, () => {
  test('are closed after our time, however long the target wants to keep them', async () => {
    const closed = Promise.withResolvers<unknown>();
    const answer = OK.replace('\r\n', '\r\nkeep-alive: timeout=86400\r\n');
    const url = await answerWith(answer, undefined, (socket) => socket.once('close', closed.resolve));
    await httpTarget(1, { maxIdleMs: 1 }).deliver(targetAt(url), attemptOf(), never);
    // Comes a day later without our limit.
    await closed.promise;
  });

  test('are bounded over all origins: the one that was used longest ago goes, and those in use stay', async () => {
    const receivers = await Promise.all(Array.from({ length: 5 }, () => receive()));
    const kind = httpTarget(4, { concurrency: 3 });
    const call = async (n: number) => kind.deliver(targetAt(receivers[n]?.url ?? ''), attemptOf(), never);
    // The first is used again and again, as under a steady load.
    for (const n of [0, 1, 0, 2, 0, 3, 0, 4, 0]) expect(await call(n)).toMatchObject({ kind: 'accepted' });
    const sockets = receivers.map(({ arrivals }) => new Set(arrivals.map(({ socket }) => socket)));
    expect(sockets.map(({ size }) => size)).toEqual([1, 1, 1, 1, 1]);
    await expect.poll(() => sockets.map(([socket]) => socket?.destroyed)).toEqual([false, true, true, false, false]);
  });
});

describe('an attempt that is given up', () => {
  test('resets its socket at the deadline', async () => {
    const { pass } = settableTimers();
    const { url, died, arrived } = await silentReceiver();
    const outcome = httpTarget().deliver(targetAt(url), attemptOf({ timeoutSeconds: 3 }), never);
    await arrived;
    pass(3);
    expect(await outcome).toMatchObject({ kind: 'unknown', error: { kind: 'timeout' } });
    expect(await died).toBe('ECONNRESET');
  });

  test('resets its socket when the daemon stops, and says who stopped', async () => {
    const stop = new AbortController();
    const { url, died, arrived } = await silentReceiver();
    const delivery = httpTarget().deliver(targetAt(url), attemptOf(), stop.signal);
    await arrived;
    stop.abort();
    expect(await delivery).toMatchObject({ kind: 'unknown', senderStopped: true });
    expect(await died).toBe('ECONNRESET');
  });

  test('was not sent if the daemon stops before it has a connection', async () => {
    const stop = new AbortController();
    const { url, arrived } = await silentReceiver();
    const kind = httpTarget(1);
    const first = kind.deliver(targetAt(url), attemptOf(), stop.signal);
    const waiting = kind.deliver(targetAt(url), attemptOf(), stop.signal);
    await arrived;
    stop.abort();
    expect(await first).toMatchObject({ kind: 'unknown', senderStopped: true });
    expect(await waiting).toMatchObject({ kind: 'transient' });
    const late = await kind.deliver(targetAt(url), attemptOf(), stop.signal);
    expect(late).toMatchObject({ kind: 'transient', error: { kind: 'network' } });
  });

  test('leaves nothing behind that could still arrive', async () => {
    let served: Socket | undefined;
    let received = 0;
    const url = await receiveTcp((socket) => {
      served = socket;
      socket.once('data', () => socket.write(OK));
      socket.on('data', (chunk) => (received += chunk.length));
    });
    const { pass } = settableTimers();
    const kind = httpTarget(1);
    await warmUp(kind, url);
    served?.pause();
    const warm = received;
    // More than the receiver's buffer holds, so that a part of it waits at the sender's end.
    const payload = `"${'x'.repeat(1_000_000)}"`;
    const begun = Promise.withResolvers<undefined>();
    const mayStart = () => {
      begun.resolve(undefined);
      return true;
    };
    const outcome = kind.deliver(targetAt(url), attemptOf({ payload, mayStart, timeoutSeconds: 3 }), never);
    await begun.promise;
    pass(3);
    expect(await outcome).toMatchObject({ kind: 'unknown', error: { kind: 'timeout' } });
    const died = deathOf(served);
    served?.resume();
    expect(await died).toBe('ECONNRESET');
    expect(received - warm).toBeLessThan(payload.length);
  });

  test('leaves its place to the next', async () => {
    const { pass } = settableTimers();
    const arrived = Promise.withResolvers<unknown>();
    let connections = 0;
    const url = await receiveTcp((socket) => {
      socket.once('data', arrived.resolve);
      if (++connections > 1) socket.on('data', () => socket.write(OK));
    });
    const kind = httpTarget(1);
    const silent = kind.deliver(targetAt(url), attemptOf({ timeoutSeconds: 3 }), never);
    const next = kind.deliver(targetAt(url), attemptOf(), never);
    await arrived.promise;
    pass(3);
    expect(await silent).toMatchObject({ kind: 'unknown' });
    expect(await next).toMatchObject({ kind: 'accepted' });
  });
});

describe('a huge answer', () => {
  const huge = 'y'.repeat(1024 * 1024);

  test.each([
    ['endless', 'transfer-encoding: chunked\r\n\r\n', `fffffff\r\n${huge}`],
    ['of known length', `content-length: ${huge.length}\r\n\r\n`, huge],
    ['ended by its connection', 'connection: close\r\n\r\n', huge],
  ])('(%s) counts by its status, and its socket is reset', async (_, headers, body) => {
    let death: Promise<string> | undefined;
    const url = await answerWith(`HTTP/1.1 202 OK\r\n${headers}${body}`, undefined, (socket) => {
      death = deathOf(socket);
    });
    const kind = httpTarget(1);
    const outcome = await kind.deliver(targetAt(url), attemptOf(), never);
    expect(outcome).toEqual({ kind: 'accepted', statusCode: 202, body: 'y'.repeat(4096), executionId: null });
    expect(await death).toMatch(/ECONNRESET|EPIPE/);
    expect(await kind.deliver(targetAt(url), attemptOf(), never)).toMatchObject({ kind: 'accepted' });
  });

  test('of exactly the limit is complete, and keeps its connection', async () => {
    const { url, arrivals } = await receive((_, response) => response.end('z'.repeat(64 * 1024)));
    const kind = httpTarget(1);
    for (let i = 0; i < 2; i++) {
      expect(await kind.deliver(targetAt(url), attemptOf(), never)).toMatchObject({ kind: 'accepted' });
    }
    expect(arrivals[0]?.socket).toBe(arrivals[1]?.socket);
  });
});

/** Reads everything and never answers. */
async function silentReceiver(): Promise<{ url: string; arrived: Promise<unknown>; died: Promise<string> }> {
  const arrived = Promise.withResolvers<unknown>();
  const died = Promise.withResolvers<string>();
  const url = await receiveTcp((socket) => {
    socket.once('data', arrived.resolve);
    deathOf(socket).then(died.resolve, died.reject);
  });
  return { url, arrived: arrived.promise, died: died.promise };
}

/** The code of the error that a connection ends with, or `closed`. */
function deathOf(socket: Socket | undefined): Promise<string> {
  return new Promise((resolve) => {
    socket?.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    socket?.once('close', () => resolve('closed'));
  });
}

async function warmUp(kind: TargetKind, url: string): Promise<void> {
  expect(await kind.deliver(targetAt(url), attemptOf(), never)).toMatchObject({ kind: 'accepted' });
}
