import { once } from 'node:events';
import { createServer } from 'node:http';
import { expect, test } from 'vitest';
import type { Resolve } from '../../src/runtime/names/resolve.ts';
import type { Attempt } from '../../src/targets/target.ts';
import { BodyPlace, BodyRoom } from '../../src/targets/body-room.ts';
import { settableTimers } from '../support/clocks.ts';
import { targetAt } from '../support/targets.ts';
import { until } from '../support/until.ts';
import { attemptOf, httpTarget, listen, never, receive } from './receivers.ts';

const KIB = 1024;

/** An attempt, and how often its body was built. */
function countedAttempt(rest: Partial<Attempt> = {}) {
  const built = { times: 0 };
  const payload = JSON.stringify('x'.repeat(60 * KIB));
  const attempt = Object.defineProperty(attemptOf(rest), 'payload', {
    get: () => {
      built.times += 1;
      return payload;
    },
  });
  return { attempt, built };
}

const BODY = { body: { template: '[{{payload}},{{payload}}]', contentType: 'application/json' } };

test('a body is built when the connection is there, and not while it is opened', async () => {
  const { url, arrivals } = await receive();
  const resolving = Promise.withResolvers<undefined>();
  const resolve: Resolve = async () => {
    await resolving.promise;
    return [{ address: '127.0.0.1', family: 4 }];
  };
  const kind = httpTarget(4, { resolve });
  const { attempt, built } = countedAttempt();
  const delivery = kind.deliver(targetAt(url.replace('127.0.0.1', 'somewhere.test'), BODY), attempt, never);
  await new Promise(setImmediate);
  expect(built.times).toBe(0);
  resolving.resolve(undefined);
  expect(await delivery).toMatchObject({ kind: 'accepted' });
  expect(built.times).toBe(2);
  expect(arrivals[0]?.body).toHaveLength(2 * (60 * KIB + 2) + 3);
});

test('a body is not built either while all connections of its origin are in use', async () => {
  const { url, arrivals } = await receive((_, response) => void waiting.push(response));
  const waiting: { end(): unknown }[] = [];
  const kind = httpTarget(1);
  const first = kind.deliver(targetAt(url), attemptOf(), never);
  await until(() => waiting[0] ?? null);
  const { attempt, built } = countedAttempt();
  const second = kind.deliver(targetAt(url, BODY), attempt, never);
  await new Promise(setImmediate);
  expect(built.times).toBe(0);
  waiting[0]?.end();
  expect(await first).toMatchObject({ kind: 'accepted' });
  await until(() => waiting[1] ?? null);
  waiting[1]?.end();
  expect(await second).toMatchObject({ kind: 'accepted' });
  expect(new Set(arrivals.map(({ socket }) => socket)).size).toBe(1);
});

test('bodies of an origin whose target does not answer leave room for those of another one', async () => {
  const held = await hangingTarget();
  const other = await receive();
  const kind = httpTarget(16, { bodyRoom: new BodyRoom(1024 * KIB) });
  const stuck = Array.from({ length: 12 }, () =>
    kind.deliver(targetAt(held.url, BODY), countedAttempt().attempt, never),
  );
  // Of 120 KiB each, four leave as much as they take.
  await until(() => (held.arrived() === 4 ? true : null));
  expect(await kind.deliver(targetAt(other.url, BODY), countedAttempt().attempt, never)).toMatchObject({
    kind: 'accepted',
  });
  expect(held.arrived()).toBe(4);
  // A small body waits for nothing.
  const small = kind.deliver(targetAt(held.url), attemptOf(), never);
  await until(() => (held.arrived() === 5 ? true : null));
  held.answerAll();
  const outcomes = await Promise.all([...stuck, small]);
  expect(outcomes.map(({ kind: what }) => what)).toEqual(Array(13).fill('accepted'));
});

test('an attempt that finds no room in its time is handed back: nothing was sent, and no failure counts', async () => {
  const timers = settableTimers();
  const held = await hangingTarget();
  const kind = httpTarget(4, { bodyRoom: new BodyRoom(200 * KIB) });
  const first = kind.deliver(targetAt(held.url, BODY), countedAttempt({ timeoutSeconds: 60 }).attempt, never);
  await until(() => (held.arrived() === 1 ? true : null));
  const { attempt, built } = countedAttempt({ timeoutSeconds: 5 });
  const second = kind.deliver(targetAt(held.url, BODY), attempt, never);
  await until(() => (built.times > 0 ? true : null));
  timers.pass(5);
  expect(await second).toMatchObject({
    kind: 'transient',
    senderStopped: true,
    error: { kind: 'timeout', message: 'no room here for its body within 5 s' },
  });
  expect(held.arrived()).toBe(1);
  held.answerAll();
  expect(await first).toMatchObject({ kind: 'accepted' });
});

test('a body larger than any part of the room goes when nothing else is under way, and who waits is served in turn', () => {
  const room = new BodyRoom(100);
  const served: string[] = [];
  const place = (origin: string, bytes: number) =>
    new BodyPlace({ room, origin, bytes, onRoom: () => served.push(`${origin} ${bytes}`) });
  const huge = place('a', 150);
  expect(huge.has).toBe(true);
  const [one, two, three] = [place('a', 10), place('b', 20), place('a', 30)];
  expect([one, two, three].map(({ has }) => has)).toEqual([false, false, false]);
  two.leave();
  huge.leave();
  expect(served).toEqual(['a 10', 'a 30']);
  expect([one.has, two.has, three.has]).toEqual([true, false, true]);
  // Of 60 that are free, b may take 30.
  expect([place('b', 31).has, place('c', 30).has]).toEqual([false, true]);
  one.leave();
  expect(served).toEqual(['a 10', 'a 30']);
  three.leave();
  expect(served).toEqual(['a 10', 'a 30', 'b 31']);
});

/** Takes whole requests and does not answer before it is told to. */
async function hangingTarget() {
  const responses: { end(): unknown }[] = [];
  let answers = false;
  const server = createServer((request, response) => {
    void once(request.resume(), 'end').then(() => {
      responses.push(response);
      if (answers) response.end();
    });
  });
  return {
    url: await listen(server),
    arrived: () => responses.length,
    answerAll: () => {
      answers = true;
      for (const response of responses) response.end();
    },
  };
}
