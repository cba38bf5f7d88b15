// @module-tag attack
import type { LookupAddress } from 'node:dns';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { addressRanges } from '../../src/config/address-ranges.ts';
import type { Connection } from '../../src/core/connections/connection.ts';
import type { FirelockEvent } from '../../src/core/events.ts';
import type { Outcome } from '../../src/core/runs/attempts/outcome.ts';
import type { HttpTarget } from '../../src/core/schedules/schedule.ts';
import { createEventBus } from '../../src/runtime/event-bus.ts';
import { hasNoAddress } from '../../src/runtime/names/resolve.ts';
import { AddressBlocked, createAddressGuard } from '../../src/targets/address-guard.ts';
import type { TargetKind } from '../../src/targets/target.ts';
import { Exchange } from '../../src/targets/http-exchange.ts';
import { tokenClient } from './login/clients.ts';
import { attemptOf, httpTarget, never, receive, receiveTcp } from './receivers.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { targetAt } from '../support/targets.ts';

const BLOCKED = {
  kind: 'blocked',
  error: { kind: 'blocked', message: 'the address of the target is blocked' },
};

type BlockedEvent = Extract<FirelockEvent, { type: 'targetBlocked' }>;

interface Attack {
  kind: TargetKind;
  /** The names that the resolver was asked for. */
  asked: string[];
  blocked: BlockedEvent[];
  deliver: (url: string, rest?: Partial<HttpTarget<string>>) => Promise<Outcome>;
}

/** A target kind whose resolver answers the n-th question with the n-th of these lists, and then with the last one. */
function attack(answers: string[][] = [], ...denied: string[]): Attack {
  const asked: string[] = [];
  const blocked: BlockedEvent[] = [];
  const events = createEventBus();
  events.subscribe((event) => {
    if (event.type === 'targetBlocked') blocked.push(event);
  });
  const resolve = (name: string) => {
    asked.push(name);
    const answer = answers[Math.min(asked.length, answers.length) - 1];
    if (answer) return Promise.resolve(answer.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })));
    return Promise.reject(hasNoAddress(name));
  };
  const guard = createAddressGuard(denied.length > 0 ? { denied: addressRanges(denied), resolve } : { resolve });
  const kind = httpTarget(2, { guard, resolve, events });
  return {
    kind,
    asked,
    blocked,
    deliver: (url, rest) => kind.deliver(targetAt(url, rest), attemptOf(), never),
  };
}

const portOf = (url: string) => new URL(url).port;

describe('an address in the URL is judged, without a resolver', () => {
  test.each(
    (
      'http://169.254.169.254/latest/meta-data/ https://169.254.169.254/ http://169.254.169.254./ ' +
      'http://2852039166/ http://0xa9fea9fe/ http://0xA9.0xFE.0xA9.0xFE/ http://0251.0376.0251.0376/ ' +
      'http://169.254.43518/ http://169.16689662/ http://169%2e254%2e169%2e254/ http://１６９.２５４.１６９.２５４/ ' +
      'http://169。254。169。254/ http://①⑥⑨.254.169.254/ http://[::ffff:169.254.169.254]/ ' +
      'http://[::FFFF:A9FE:A9FE]/ http://[::169.254.169.254]/ http://[::ffff:0:169.254.169.254]/ ' +
      'http://[64:ff9b::169.254.169.254]/ http://[64:ff9b:1::a9fe:a9fe]/ http://[2002:a9fe:a9fe::1]/ ' +
      'http://[fe80::1]/ http://[fd00:ec2::254]/ http://100.100.100.200/ http://168.63.129.16/ http://0/ ' +
      'http://0.0.0.0/ http://[::]/ http://255.255.255.255/ http://[ff02::1]/'
    ).split(' '),
  )('%s', async (url) => {
    const { deliver, asked } = attack();
    expect(await deliver(url)).toEqual(BLOCKED);
    expect(asked).toEqual([]);
  });

  test('and a URL with a zone is invalid', async () => {
    const { deliver, asked } = attack();
    expect(await deliver('http://[fe80::1%25eth0]/')).toMatchObject({ kind: 'transient' });
    expect(asked).toEqual([]);
  });
});

test('a token server at a blocked address is told the operator, of whichever run wanted the token', async () => {
  const events = createEventBus();
  const seen: FirelockEvent[] = [];
  events.subscribe((event) => seen.push(event));
  const kind = httpTarget(2, { events });
  const auth = { tokenUrl: 'http://169.254.169.254/token' };
  const connection = { id: 'api', headers: {}, ...tokenClient({ auth }) } as unknown as Connection<string>;
  const outcome = await kind.prepare?.(attemptOf({ connection }), never);
  expect(outcome).toMatchObject({ error: { message: expect.stringContaining('is blocked') as string } });
  const by = {
    origin: 'http://169.254.169.254',
    address: '169.254.169.254',
    because: expect.any(String) as string,
  };
  expect(seen).toEqual([{ type: 'tokenServerBlocked', connectionUid: 'u-1', ...by }]);
});

describe('the addresses of a name', () => {
  test.each([
    ['metadata.example', ['169.254.169.254']],
    ['METADATA.Example.', ['169.254.169.254']],
    ['bücher.example', ['fe80::1%eth0']],
    ['one-of-several.example', ['93.184.216.34', '2606:4700::1111', '64:ff9b::a9fe:a9fe']],
    ['garbage.example', ['not an address']],
    ['odd-spelling.example', ['0xa9.254.169.254']],
  ])('%s are all judged: %j', async (name, addresses) => {
    const { deliver, blocked } = attack([addresses]);
    expect(await deliver(`http://${name}/secret?key=1`)).toEqual(BLOCKED);
    expect(blocked).toHaveLength(1);
    expect(blocked[0]).toMatchObject({
      origin: new URL(`http://${name}`).origin,
      scheduleId: 'nightly',
      attempt: 1,
    });
    expect(JSON.stringify(blocked)).not.toContain('secret');
  });

  test('are connected to as they were judged, although the name has others by then', async () => {
    const { url, arrivals } = await receive((_, response) => response.setHeader('connection', 'close').end());
    const { deliver, asked, blocked } = attack([['127.0.0.1'], ['169.254.169.254']]);
    const rebinding = `http://rebinding.example:${portOf(url)}/`;
    expect(await deliver(rebinding)).toMatchObject({ kind: 'accepted' });
    expect(asked).toEqual(['rebinding.example']);
    expect(arrivals[0]?.headers.host).toBe(`rebinding.example:${portOf(url)}`);
    // The next connection is judged anew.
    expect(await deliver(rebinding)).toEqual(BLOCKED);
    expect(asked).toHaveLength(2);
    expect(blocked[0]?.address).toBe('169.254.169.254');
    expect(arrivals).toHaveLength(1);
  });

  test('are not judged again for a connection that is kept', async () => {
    const { url, arrivals } = await receive();
    const { deliver, asked } = attack([['127.0.0.1'], ['169.254.169.254']]);
    for (let i = 0; i < 5; i++)
      expect(await deliver(`http://kept.example:${portOf(url)}/`)).toMatchObject({ kind: 'accepted' });
    expect(arrivals).toHaveLength(5);
    expect(asked).toEqual(['kept.example']);
  });

  test('are tried in turn where they are allowed', async () => {
    const { url } = await receive(undefined, '127.0.0.1');
    const { deliver } = attack([['::1', '127.0.0.1']]);
    expect(await deliver(`http://two.example:${portOf(url)}/`)).toMatchObject({ kind: 'accepted' });
  });

  test('that do not exist are transient, also if the answer is empty', async () => {
    for (const answers of [[], [[]]]) {
      const outcome = await attack(answers).deliver('http://unknown.example/');
      expect(outcome).toMatchObject({ kind: 'transient', error: { kind: 'network' } });
      expect(outcome).toHaveProperty('error.message', expect.stringContaining('name not resolved'));
    }
  });
});

test('no connection is opened to a blocked address, and every reason has the same message', async () => {
  let connections = 0;
  const url = await receiveTcp(() => (connections += 1));
  const port = Number(portOf(url));
  const databases = [{ name: '127.0.0.1', port }];
  const outcomes = [
    await attack([], '127.0.0.0/8').deliver(url),
    await attack([['127.0.0.1']], '127.0.0.1').deliver(`http://name.example:${port}/`),
    await attack([['x']]).deliver(`http://name.example:${port}/`),
    ...(await Promise.all(
      [{ ownPorts: new Set([port]) }, { databases }].map((options) =>
        httpTarget(1, { guard: createAddressGuard(options) }).deliver(targetAt(url), attemptOf(), never),
      ),
    )),
  ];
  expect(outcomes).toEqual(outcomes.map(() => BLOCKED));
  expect(connections).toBe(0);
});

test('an attempt that is given up while its name is resolved opens nothing afterwards', async () => {
  const { url, arrivals } = await receive();
  let connections = 0;
  const silent = await receiveTcp(() => (connections += 1));
  const answer = Promise.withResolvers<LookupAddress[]>();
  const kind = httpTarget(1, { resolve: () => answer.promise });
  const slow = targetAt(`http://slow.example:${portOf(silent)}/`);
  expect(await kind.deliver(slow, attemptOf({ timeoutSeconds: 0.2 }), never)).toMatchObject({
    kind: 'transient',
    error: { kind: 'timeout' },
  });
  answer.resolve([{ address: '127.0.0.1', family: 4 }]);
  // Whatever the late answer leads to has been begun before this connection is.
  await kind.deliver(targetAt(url), attemptOf(), never);
  expect(arrivals).toHaveLength(1);
  expect(connections).toBe(0);
});

test('a lookup and a cancel call are judged as a delivery is', async () => {
  const { kind, blocked } = attack();
  const call = { url: 'http://169.254.169.254/', method: 'GET' as const, headers: {} };
  const target = targetAt('http://127.0.0.1:1/', { lookup: call, cancel: call });
  expect(await kind.lookup(target, attemptOf(), never)).toEqual({
    kind: 'unclear',
    error: { kind: 'blocked', message: 'lookup: the address of the target is blocked' },
  });
  expect(await kind.cancel(target, attemptOf(), never)).toEqual(BLOCKED.error);
  expect(blocked.map(({ address }) => address)).toEqual(['169.254.169.254', '169.254.169.254']);
});

test('a redirect to a blocked address is an answer like any other, and is not followed', async () => {
  const { url } = await receive((_, response) =>
    response.writeHead(302, { location: 'http://169.254.169.254/', 'content-length': 0 }).end(),
  );
  const { deliver, blocked } = attack();
  expect(await deliver(url)).toEqual({ kind: 'rejected', statusCode: 302, body: '' });
  expect(blocked).toEqual([]);
});

test('a compressed answer is unpacked no further than is read', async () => {
  const bomb = gzipSync(Buffer.alloc(32 * 1024 * 1024));
  const { url } = await receive((_, response) =>
    response.writeHead(200, { 'content-encoding': 'gzip', 'content-type': 'application/json' }).end(bomb),
  );
  const outcome = await attack().deliver(url);
  expect(outcome).toMatchObject({ kind: 'accepted', executionId: null });
  expect(outcome.kind === 'accepted' && Buffer.byteLength(outcome.body)).toBeLessThanOrEqual(4096);
});

test('a request that was written stays of unknown outcome, also if its next connection would be blocked', () => {
  const ended: Outcome[] = [];
  const destroyed: Error[] = [];
  const connection = {
    open: (_: unknown, onOpen: (error: null) => void) => onOpen(null),
    send: () => undefined,
    requestBegins: () => undefined,
    destroy: (e: Error) => destroyed.push(e),
  };
  const exchange = new Exchange({
    pool: { lend: (borrower: Exchange) => borrower.start(connection as never) } as never,
    request: { finish: () => ({ body: null }) } as never,
    clock: systemClock,
    timeoutSeconds: 20,
    freshConnection: false,
    judging: { rules: null, delivery: 'atLeastOnce', asked: false },
    mayStart: () => true,
    onEnd: (_, outcome) => void ended.push(outcome),
  });
  exchange.begin();
  exchange.onRequestStart({} as never);
  exchange.onResponseError(null, new AddressBlocked('169.254.169.254', 'it is denied'));
  expect(ended).toMatchObject([{ kind: 'unknown', error: { kind: 'network' } }]);
  expect(JSON.stringify(ended)).not.toContain('169.254');
  expect(destroyed).toHaveLength(1);
});
