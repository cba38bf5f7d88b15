import { once } from 'node:events';
import type { Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import type { Delivery } from '../../src/core/schedules/schedule.ts';
import type { TargetKind } from '../../src/targets/target.ts';
import { attemptOf, httpTarget, never, receive, receiveTcp } from './receivers.ts';
import { settableTimers } from '../support/clocks.ts';
import { targetAt } from '../support/targets.ts';

const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n';

function send(kind: TargetKind, url: string, delivery: Delivery = 'atMostOnce', runId = 'run') {
  return kind.deliver(targetAt(url), attemptOf({ delivery, runId }), never);
}

describe('a run at most once', () => {
  test('has a connection to itself: one for each run, told to close and closed', async () => {
    const { url, arrivals } = await receive();
    const kind = httpTarget(2);
    for (let i = 0; i < 3; i++) await send(kind, url);
    await Promise.all(Array.from({ length: 7 }, () => send(kind, url)));
    const sockets = new Set(arrivals.map(({ socket }) => socket));
    expect([arrivals.length, sockets.size]).toEqual([10, 10]);
    expect(new Set(arrivals.map(({ headers }) => headers.connection))).toEqual(new Set(['close']));
  });

  test('closes its connection also if the server would keep it', async () => {
    const sockets: Socket[] = [];
    const url = await receiveTcp((socket) => {
      sockets.push(socket);
      socket.on('data', () => socket.write(OK));
    });
    expect(await send(httpTarget(), url)).toMatchObject({ kind: 'accepted' });
    await closed(sockets[0]);
    expect(sockets).toHaveLength(1);
  });

  test('uses no kept connection, and leaves those alone for which there is room', async () => {
    const { url, arrivals } = await receive();
    const kind = httpTarget(2);
    await send(kind, url, 'atLeastOnce');
    await send(kind, url);
    await send(kind, url, 'atLeastOnce');
    const [kept, own, keptAgain] = arrivals.map(({ socket }) => socket);
    expect(own).not.toBe(kept);
    expect(keptAgain).toBe(kept);
  });

  test('arrives once however the server treats its connections, and only one without an answer is unknown', async () => {
    const { url, requests, answered } = await unreliableReceiver();
    const kind = httpTarget(4);
    const deliveries = Array.from({ length: 120 }, async (_, n) => {
      const delivery = n % 2 === 0 ? 'atMostOnce' : 'atLeastOnce';
      const outcome = await send(kind, url, delivery, `${delivery}-${n}`);
      return { runId: `${delivery}-${n}`, kind: outcome.kind };
    });
    const ended = (await Promise.all(deliveries)).filter(({ runId }) => runId.startsWith('atMostOnce'));
    for (const { runId, kind: outcome } of ended) {
      const arrivals = requests.filter((request) => request.runId === runId);
      expect(arrivals).toHaveLength(1);
      expect(requests.filter(({ socket }) => socket === arrivals[0]?.socket)).toHaveLength(1);
      expect(outcome).toBe(answered.has(runId) ? 'accepted' : 'unknown');
    }
    expect(new Set(ended.map(({ kind: outcome }) => outcome))).toEqual(new Set(['accepted', 'unknown']));
  });
});

describe('at the cap', () => {
  test('the kept connection that is idle longest makes room', async () => {
    const held: (() => void)[] = [];
    const { url, arrivals } = await receive((request, response) => {
      if (request.headers['webhook-id'] === 'held') {
        held.push(() => response.end());
        if (held.length === 2) for (const release of held.splice(0)) release();
      } else {
        response.end();
      }
    });
    const kind = httpTarget(2);
    await Promise.all([send(kind, url, 'atLeastOnce', 'held'), send(kind, url, 'atLeastOnce', 'held')]);
    const kept = arrivals.map(({ socket }) => socket);
    expect(new Set(kept).size).toBe(2);
    expect(await send(kind, url)).toMatchObject({ kind: 'accepted' });
    await Promise.any(kept.map(closed));
    await send(kind, url, 'atLeastOnce');
    expect(kept).not.toContain(arrivals[2]?.socket);
    expect(kept).toContain(arrivals[3]?.socket);
    expect(arrivals[3]?.socket.destroyed).toBe(false);
  });

  test('no more are in use than allowed, in whatever order they come', async () => {
    let inUse = 0;
    let most = 0;
    const { url, arrivals } = await receive((_, response) => {
      most = Math.max(most, (inUse += 1));
      setTimeout(() => {
        inUse -= 1;
        response.end();
      }, 5);
    });
    const kind = httpTarget(1);
    await send(kind, url, 'atLeastOnce');
    const order: Delivery[] = ['atMostOnce', 'atLeastOnce', 'atLeastOnce', 'atMostOnce', 'atMostOnce'];
    const outcomes = await Promise.all(
      Array.from({ length: 20 }, (_, n) => send(kind, url, order[n % order.length], `${n}`)),
    );
    expect(outcomes.every(({ kind: outcome }) => outcome === 'accepted')).toBe(true);
    expect(arrivals.slice(1).map(({ headers }) => headers['webhook-id'])).toEqual(outcomes.map((_, n) => `${n}`));
    expect(most).toBe(1);
  });

  test('an attempt leaves the line at its deadline, with nothing sent', async () => {
    const { pass } = settableTimers();
    const arrived = Promise.withResolvers<undefined>();
    const { url, arrivals } = await receive(() => arrived.resolve(undefined));
    const kind = httpTarget(1);
    const stop = new AbortController();
    const busy = kind.deliver(targetAt(url), attemptOf(), stop.signal);
    const attempt = attemptOf({ delivery: 'atMostOnce', timeoutSeconds: 3 });
    const waited = kind.deliver(targetAt(url), attempt, never);
    await arrived.promise;
    pass(3);
    expect(await waited).toMatchObject({
      kind: 'transient',
      error: { kind: 'timeout' },
      senderStopped: false,
    });
    stop.abort();
    expect(await busy).toMatchObject({ kind: 'unknown' });
    expect(arrivals).toHaveLength(1);
  });
});

describe('an attempt that at most once provably did not send', () => {
  test.each([
    ['a refused port', () => Promise.resolve('http://127.0.0.1:1/'), /connection failed/],
    ['an unknown name', () => Promise.resolve('http://nowhere.invalid/'), /name not resolved/],
    ['no TLS at the other end', plainServer, /TLS failed/],
    ['a URL that is none', () => Promise.resolve('ftp://127.0.0.1/'), /cannot be built/],
  ])('is transient: %s', async (_, server, message) => {
    const outcome = await send(httpTarget(), await server());
    expect(outcome).toMatchObject({ kind: 'transient', statusCode: null, senderStopped: false });
    expect(outcome).toHaveProperty('error.message', expect.stringMatching(message));
  });
});

describe('after its first byte', () => {
  test.each(['end', 'resetAndDestroy'] as const)(
    'a connection that dies (%s) is unknown, and not followed by another',
    async (how) => {
      let requests = 0;
      const url = await receiveTcp((socket) => {
        socket.once('data', () => {
          requests += 1;
          socket[how]();
        });
      });
      const kind = httpTarget(1);
      expect(await send(kind, url)).toMatchObject({ kind: 'unknown', error: { kind: 'network' } });
      // Had there been another, it would have been before this one's turn.
      expect(await send(kind, url)).toMatchObject({ kind: 'unknown' });
      expect(requests).toBe(2);
    },
  );

  test('silence is unknown, and its socket is reset', async () => {
    const { pass } = settableTimers();
    const [arrived, died] = [Promise.withResolvers<unknown>(), Promise.withResolvers<string | undefined>()];
    const url = await receiveTcp((socket) => {
      socket.once('data', arrived.resolve);
      socket.once('error', (error: NodeJS.ErrnoException) => died.resolve(error.code));
      socket.once('close', () => died.resolve('closed'));
    });
    const attempt = attemptOf({ delivery: 'atMostOnce', timeoutSeconds: 3 });
    const outcome = httpTarget().deliver(targetAt(url), attempt, never);
    await arrived.promise;
    pass(3);
    expect(await outcome).toMatchObject({
      kind: 'unknown',
      error: { kind: 'timeout' },
      senderStopped: false,
    });
    expect(await died.promise).toBe('ECONNRESET');
  });
});

/** Keeps, ends or resets its connections after an answer, sooner or later, and now and then instead of one. */
async function unreliableReceiver() {
  const requests: { runId: string; socket: Socket }[] = [];
  const answered = new Set<string>();
  const url = await receiveTcp((socket) => {
    socket.on('data', (chunk) => {
      const runId = /webhook-id: (\S+)/.exec(chunk.toString())?.[1];
      if (runId === undefined) return;
      requests.push({ runId, socket });
      const [delivery = ''] = runId.split('-');
      const served = requests.filter((request) => request.runId.startsWith(delivery)).length;
      const die = Math.random() < 0.5 ? () => socket.end() : () => socket.resetAndDestroy();
      if (served % 5 === 0) {
        die();
        return;
      }
      answered.add(runId);
      socket.write(OK, () => {
        // A reset of the only request of a connection could overtake its answer.
        if (delivery === 'atMostOnce') socket.end();
        else if (Math.random() < 0.6) setTimeout(die, Math.random() * 10);
      });
    });
  });
  return { url, requests, answered };
}

async function plainServer(): Promise<string> {
  const url = await receiveTcp((socket) => socket.once('data', () => socket.end('HTTP/1.1 400 Bad\r\n\r\n')));
  return url.replace('http:', 'https:');
}

async function closed(socket: Socket | undefined): Promise<void> {
  if (socket?.closed === false) await once(socket, 'close');
}
