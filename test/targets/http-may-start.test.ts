import { once } from 'node:events';
import type { Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import { DELIVERIES } from '../../src/core/schedules/schedule.ts';
import { attemptOf, httpTarget, never, receive, receiveTcp } from './receivers.ts';
import { targetAt } from '../support/targets.ts';

const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n';
const STOPPED = { kind: 'transient', error: { kind: 'network' }, statusCode: null, senderStopped: true };

describe.each(DELIVERIES)('an attempt (%s) that may no longer start', (delivery) => {
  const refused = attemptOf({ delivery, mayStart: () => false });

  test('writes nothing on a new connection, and closes it', async () => {
    const { url, bytes, sockets, accepted } = await countingReceiver();
    const outcome = await httpTarget().deliver(targetAt(url), refused, never);
    expect(outcome).toMatchObject(STOPPED);
    await accepted;
    await closed(sockets[0]);
    expect([sockets.length, bytes()]).toEqual([1, 0]);
  });

  test('writes nothing on a kept connection, and leaves its place to the next', async () => {
    const { url, bytes, sockets } = await countingReceiver();
    const kind = httpTarget(1);
    expect(await kind.deliver(targetAt(url), attemptOf(), never)).toMatchObject({ kind: 'accepted' });
    const before = bytes();
    expect(await kind.deliver(targetAt(url), refused, never)).toMatchObject(STOPPED);
    await closed(sockets[0]);
    expect(bytes()).toBe(before);
    expect(await kind.deliver(targetAt(url), attemptOf(), never)).toMatchObject({ kind: 'accepted' });
  });

  test('is stopped also if it still might start when it got in line', async () => {
    const { url, arrivals } = await receive((_, response) => {
      may = false;
      response.end();
    });
    let may = true;
    const kind = httpTarget(1);
    const attempt = (runId: string) => attemptOf({ runId, delivery, mayStart: () => may });
    const [first, second, third] = await Promise.all(
      ['a', 'b', 'c'].map((runId) => kind.deliver(targetAt(url), attempt(runId), never)),
    );
    expect(first).toMatchObject({ kind: 'accepted' });
    expect([second, third]).toMatchObject([STOPPED, STOPPED]);
    expect(arrivals.map(({ headers }) => headers['webhook-id'])).toEqual(['a']);
  });

  test('is not asked before there is a connection to write on', async () => {
    let asked = 0;
    const mayStart = () => (asked += 1) > 0;
    const kind = httpTarget();
    const stalled = (await receiveTcp(() => undefined)).replace('http:', 'https:');
    for (const url of [stalled, 'http://127.0.0.1:1/', 'http://nowhere.invalid/']) {
      const attempt = attemptOf({ delivery, mayStart, timeoutSeconds: 0.5 });
      const outcome = await kind.deliver(targetAt(url), attempt, never);
      expect(outcome).toMatchObject({ kind: 'transient', senderStopped: false });
    }
    expect(asked).toBe(0);
    const { url, arrivals } = await receive();
    const attempt = attemptOf({ delivery, mayStart });
    expect(await kind.deliver(targetAt(url), attempt, never)).toMatchObject({ kind: 'accepted' });
    expect([asked, arrivals.length]).toEqual([1, 1]);
  });
});

/** Answers every request, and counts the bytes that arrive over all connections. */
async function countingReceiver() {
  const sockets: Socket[] = [];
  const accepted = Promise.withResolvers<unknown>();
  let bytes = 0;
  const url = await receiveTcp((socket) => {
    sockets.push(socket);
    socket.on('data', (chunk) => {
      bytes += chunk.length;
      socket.write(OK);
    });
    accepted.resolve(undefined);
  });
  return { url, sockets, bytes: () => bytes, accepted: accepted.promise };
}

async function closed(socket: Socket | undefined): Promise<void> {
  if (socket?.closed === false) await once(socket, 'close');
}
