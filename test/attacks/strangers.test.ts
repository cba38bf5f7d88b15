// @module-tag attack
import { promisify } from 'node:util';
import { pino } from 'pino';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type ConnectionLimits, standardLimits } from '../../src/api/http/plugins/strangers.ts';
import { createSignsServer } from '../../src/api/server.ts';
import { newToken, settableClock } from '../api/access/support.ts';
import { sharedApi, startApi } from '../api/api.ts';
import { until } from '../support/until.ts';
import { openConnection } from './raw-connection.ts';

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`;
const QUICK = { lookEveryMs: 10 };
/** More than the buffers of two sockets take. */
const LARGE = 'x'.repeat(4 * 1024 * 1024);

/** The server of signs of life; it counts how often the metrics were written. */
async function startSigns(
  limits: Partial<ConnectionLimits> = {},
  text = () => 'up 1\n',
  asked: () => void = () => undefined,
) {
  const clock = settableClock();
  let written = 0;
  const server = await createSignsServer({
    clock,
    logger: pino({ level: 'silent' }),
    basePath: '',
    connectionLimits: { ...standardLimits(() => false), ...limits },
    browserRules: () => null,
    readiness: () => {
      asked();
      return { status: 'ready', checks: {}, warnings: [] };
    },
    metrics: {
      contentType: 'text/plain',
      text: () => {
        written += 1;
        return Promise.resolve(text());
      },
    },
  });
  onTestFinished(() => server.close());
  const url = await server.listen({ host: '127.0.0.1', port: 0 });
  return {
    url,
    clock,
    written: () => written,
    connections: promisify(server.server.getConnections.bind(server.server)),
  };
}

describe('a pipeline', () => {
  test('of five hundred requests holds up nobody: another connection is answered before them', async () => {
    const { url } = await startSigns();
    const other = await openConnection(url);
    const pipeline = await openConnection(url, { beginning: get('/nope').repeat(500) });
    other.socket.write(get('/healthz'));
    await other.answered();
    expect(pipeline.statuses().length).toBeLessThan(400);
    await pipeline.answered(500);
  });

  test('of strangers takes turns with the others: what they send behind a first request is answered one a turn of the loop', async () => {
    let [turns, calls, isOver] = [0, 0, false];
    const turn = () => {
      turns += 1;
      if (!isOver) setImmediate(turn);
    };
    onTestFinished(() => void (isOver = true));
    const { url } = await startSigns({ mostWaitingInAll: 10_000 }, undefined, () => (calls += 1));
    setImmediate(turn);
    const beginning = get('/readyz').repeat(100);
    const pipelines = await Promise.all(Array.from({ length: 20 }, () => openConnection(url, { beginning })));
    await until(() => (calls >= 200 ? true : null));
    expect(calls).toBeLessThanOrEqual(20 + turns + 1);
    await Promise.all(pipelines.map((one) => one.answered(100)));
  });

  test('with more than five hundred waiting loses its connection', async () => {
    const { url } = await startSigns();
    const { socket, closed, statuses } = await openConnection(url);
    socket.write(get('/nope').repeat(12_000));
    await closed();
    expect(statuses().length).toBeLessThanOrEqual(501);
    await (await openConnection(url, { beginning: get('/healthz') })).answered();
  });

  test('loses its connection too where those of all connections are too many together; one request never does', async () => {
    const { url } = await startSigns({ mostWaiting: 50, mostWaitingInAll: 60 });
    // What is not read keeps those behind it waiting.
    const large = await startSigns({ mostWaiting: 50, mostWaitingInAll: 60 }, () => LARGE);
    const pipelines = [];
    for (let count = 0; count < 2; count += 1)
      pipelines.push(await openConnection(large.url, { beginning: get('/metrics').repeat(40), reads: false }));
    await pipelines[1]?.closed();
    expect(pipelines[0]?.socket.destroyed).toBe(false);
    await (await openConnection(large.url, { beginning: get('/healthz') })).answered();
    await (await openConnection(url, { beginning: get('/healthz').repeat(51) })).answered(51);
  });
});

test('however often they are asked for, the metrics are written once a second, and all get the same bytes', async () => {
  const { url, clock, written } = await startSigns();
  const ask = async () => (await openConnection(url, { beginning: get('/metrics').repeat(300) })).answered(300);
  await ask();
  clock.forward(999);
  await ask();
  expect(written()).toBe(1);
  clock.forward(1);
  await ask();
  expect(written()).toBe(2);
});

describe('an answer that is not read', () => {
  const ann = newToken('ann', 'admin');
  const me = `GET /api/v1/me HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${ann.secret}\r\n\r\n`;
  /** Some 40 MB of answers. */
  const large = get('/openapi.json').repeat(100);

  test('ends with its connection, without a token after its time, also where it is dripped', async () => {
    const { url, connections } = await startSigns({ ...QUICK, strangerSeconds: 0.1 }, () => LARGE);
    const beginning = get('/metrics').repeat(10);
    const silent = await openConnection(url, { beginning, reads: false });
    const dripping = await openConnection(url, { beginning, reads: false });
    const drip = setInterval(() => void dripping.socket.read(100), 5);
    onTestFinished(() => clearInterval(drip));
    await until(async () => ((await connections()) === 0 ? true : null));
    for (const { socket, closed, received } of [silent, dripping]) {
      socket.resume();
      await closed();
      expect(received().length).toBeLessThan(10 * LARGE.length);
    }
  });

  test('with a token ends once nothing of it moves, and not before', async () => {
    const api = await startApi(undefined, {
      apiTokens: [ann.known],
      limits: { ...QUICK, strangerSeconds: 0.1, stillSeconds: 2 },
    });
    onTestFinished(() => api.stop());
    const reading = await openConnection(api.url, { beginning: me + large, reads: false });
    const still = await openConnection(api.url, { beginning: me + large, reads: false });
    // Now and then, for longer than strangers get.
    const reads = setInterval(() => {
      if (reading.socket.isPaused()) reading.socket.resume();
      else reading.socket.pause();
    }, 20);
    onTestFinished(() => clearInterval(reads));
    await reading.answered(101);
    await until(async () => ((await api.connections()) < 2 ? true : null));
    expect(reading.socket.destroyed).toBe(false);
    still.socket.resume();
    await still.closed();
    expect(still.statuses().length).toBeLessThan(101);
  });
});

describe('of strangers’ connections from one address', () => {
  const ann = newToken('ann', 'admin');
  const limits = { mostOfAddress: 10 };

  test('the one that was answered longest ago gives way, also if its answer is not read, never the newcomer', async () => {
    const { url } = await startSigns(limits, () => LARGE);
    const beginning = get('/metrics').repeat(10);
    const unread = [];
    for (let count = 0; count < 10; count += 1) unread.push(await openConnection(url, { beginning, reads: false }));
    const newcomers = [];
    for (let count = 0; count < 10; count += 1)
      newcomers.push(await openConnection(url, { beginning: get('/healthz') }));
    for (const { answered } of newcomers) await answered();
    for (const { socket, closed } of unread) {
      socket.resume();
      await closed();
    }
    // The first of them is answered once more: now another is the one that was answered longest ago.
    newcomers[0]?.socket.write(get('/healthz'));
    await newcomers[0]?.answered(2);
    await (await openConnection(url, { beginning: get('/healthz') })).answered();
    await newcomers[1]?.closed();
    expect(newcomers[0]?.socket.destroyed).toBe(false);
  });

  test('those of callers with a token do not count, until a call of theirs has none', async () => {
    const api = await startApi(undefined, { apiTokens: [ann.known], limits });
    onTestFinished(() => api.stop());
    const call = (headers: string) => `GET /api/v1/me HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n`;
    const known = [];
    for (let count = 0; count < 15; count += 1)
      known.push(await openConnection(api.url, { beginning: call(`Authorization: Bearer ${ann.secret}\r\n`) }));
    for (const { answered } of known) await answered();
    known[0]?.socket.write(call(''));
    await known[0]?.answered(2);
    const strangers = [];
    for (let count = 0; count < 10; count += 1)
      strangers.push(await openConnection(api.url, { beginning: get('/healthz') }));
    for (const { answered } of strangers) await answered();
    await known[0]?.closed();
    expect(known[0]?.statuses()).toEqual([200, 401]);
    expect(known.slice(1).filter(({ socket }) => socket.destroyed)).toEqual([]);
  });
});

describe('before the body, whatever announces it', () => {
  const api = sharedApi();
  const HOST = ' HTTP/1.1\r\nHost: localhost\r\n';

  test.each([
    ['a length', 'Content-Length: 100000\r\nContent-Type: application/json\r\n\r\n{'],
    ['a length of another type', 'Content-Length: 100000\r\nContent-Type: text/plain\r\n\r\nx'],
    ['chunks', 'Transfer-Encoding: chunked\r\nContent-Type: application/json\r\n\r\n5\r\n{'],
    ['Expect', 'Content-Length: 10\r\nContent-Type: application/json\r\nExpect: 100-continue\r\n\r\n'],
  ])('%s: no route and no such method are answered, on both ports', async (_name, rest) => {
    const { url: signs } = await startSigns();
    for (const [url, request, status] of [
      [api.url, 'POST /nope', 404],
      [api.url, 'PUT /api/v1/nope', 404],
      [api.url, 'POST /healthz', 405],
      [api.url, 'POST /api/v1/limits', 405],
      [api.url, 'PUT /api/v1/runs/batch', 405],
      [signs, 'POST /nope', 404],
      [signs, 'PUT /api/v1/limits/x', 404],
      [signs, 'POST /metrics', 405],
    ] as const) {
      const { answered, statuses } = await openConnection(url, { beginning: request + HOST + rest });
      await answered();
      expect([request, statuses()]).toEqual([request, [status]]);
    }
  });

  test('Expect: a call that is refused for its token is not asked for its body', async () => {
    const closed = await startApi(undefined, { apiTokens: [newToken('ann', 'admin').known] });
    onTestFinished(() => closed.stop());
    const beginning = `PUT /api/v1/limits/x${HOST}Content-Length: 10\r\nExpect: 100-continue\r\n\r\n`;
    const { answered, statuses } = await openConnection(closed.url, { beginning });
    await answered();
    expect(statuses()).toEqual([401]);
  });
});

const HALF = 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n';

async function startLimited(limits: Parameters<typeof startApi>[1] & object) {
  const api = await startApi(undefined, limits);
  onTestFinished(() => api.stop());
  const connect = (beginning: string, localAddress?: string) =>
    openConnection(api.url, { beginning, ...(localAddress === undefined ? {} : { localAddress }) });
  return { api, connect };
}

test('of half-open connections from one address the oldest give way; those of others stay, and requests are answered', async () => {
  const { connect } = await startLimited({ limits: { mostOfAddress: 10 } });
  const neighbour = await connect(`${HALF}\r\n`, '127.0.0.2');
  await neighbour.answered();
  const opened = [];
  for (let count = 0; count < 30; count += 1) opened.push(await connect(HALF));
  await Promise.all(opened.slice(0, 20).map(({ closed }) => closed()));
  // From the same address too: it is the newest.
  await (await connect(`${HALF}\r\n`)).answered();
  expect(opened.slice(21).map(({ socket }) => socket.destroyed)).toEqual(Array(9).fill(false));
  neighbour.socket.write(`${HALF}\r\n`);
  await neighbour.answered(2);
});

test('when all connections are taken, from however many addresses, one that brings a request is still served', async () => {
  const { connect } = await startLimited({ limits: { most: 20 } });
  const opened = [];
  for (let count = 0; count < 60; count += 1) {
    const begun = ['', HALF, `${HALF}\r\n`][count % 3] ?? '';
    opened.push(await connect(begun, `127.0.0.${2 + (count % 7)}`));
  }
  await Promise.all(opened.slice(0, 40).map(({ closed }) => closed()));
  await (await connect(`${HALF}\r\n`)).answered();
});

test('a request under way, such as a claim that waits, does not give way', async () => {
  const { api, connect } = await startLimited({ limits: { most: 10, mostOfAddress: 5 } });
  const claim = { workerId: 'w', waitSeconds: 60 };
  const waiting = api.call('POST', '/api/v1/queues/work/claim', claim);
  await until(async () => ((await api.sql`SELECT FROM queue_workers`).length > 0 ? true : null));
  for (let count = 0; count < 30; count += 1) await connect(HALF);
  const target = { type: 'pull', queue: 'work' };
  expect((await api.call('POST', '/api/v1/runs', { target })).status).toBe(201);
  await api.pullQueues.stop();
  expect((await waiting).status).toBe(200);
});

test('a trusted proxy may keep as many connections as it likes, as long as there is room', async () => {
  const limits = { mostOfAddress: 3, isProxy: (address: string) => address === '127.0.0.1' };
  const { connect } = await startLimited({ limits });
  const idle = [];
  for (let count = 0; count < 10; count += 1) idle.push(await connect(`${HALF}\r\n`));
  for (const { answered } of idle) await answered();
  for (const { socket } of idle) socket.write(`${HALF}\r\n`);
  for (const { answered } of idle) await answered(2);
});
