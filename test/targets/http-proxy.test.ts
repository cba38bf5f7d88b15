import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { parseEgressBypass, parseEgressProxy } from '../../src/config/egress-proxy.ts';
import { attemptOf, httpTarget, never, receive, receiveTcp } from './receivers.ts';
import { targetAt } from '../support/targets.ts';

/** A proxy that opens tunnels to `to`, whatever host is named, or answers with `refusal`. */
async function startProxy({ to = '', refusal = '' }: { to?: string; refusal?: string }) {
  const heads: string[] = [];
  const url = await receiveTcp((socket) => {
    socket.once('data', (head) => {
      heads.push(head.toString());
      if (refusal !== '') {
        socket.end(refusal);
        return;
      }
      const upstream = connect(Number(new URL(to).port), '127.0.0.1', () => {
        // In two pieces, as a network may cut it.
        socket.write('HTTP/1.1 200 Connection');
        setImmediate(() => {
          socket.write(' established\r\nVia: test\r\n\r\n');
          socket.pipe(upstream).pipe(socket);
        });
      });
      upstream.on('error', () => socket.destroy());
      socket.on('close', () => upstream.destroy());
    });
  });
  return { heads, url: `http://user:p%40ss@${new URL(url).host}` };
}

const through = (url: string) => httpTarget(2, { proxy: parseEgressProxy(url), resolve: noName });
const noName = () => Promise.reject(new Error('no name is resolved here'));

test('a target is called through a tunnel of the proxy, which gets the name, the port and the credentials', async () => {
  const target = await receive((_, response) => response.end('{"executionId": "e1"}'));
  const proxy = await startProxy({ to: target.url });
  const kind = through(proxy.url);
  const outcome = await kind.deliver(targetAt('http://jobs.internal:8123/run'), attemptOf(), never);
  expect(outcome).toMatchObject({ kind: 'accepted', executionId: 'e1' });
  expect(target.arrivals).toMatchObject([{ url: '/run', headers: { host: 'jobs.internal:8123' } }]);
  const credentials = Buffer.from('user:p@ss').toString('base64');
  expect(proxy.heads).toEqual([
    `CONNECT jobs.internal:8123 HTTP/1.1\r\nHost: jobs.internal:8123\r\nProxy-Authorization: Basic ${credentials}\r\n\r\n`,
  ]);
  await kind.deliver(targetAt('http://jobs.internal:8123/run'), attemptOf(), never);
  // The tunnel is kept.
  expect(proxy.heads).toHaveLength(1);
});

test.each([
  ['HTTP/1.1 403 Forbidden\r\n\r\n', { kind: 'blocked', error: { kind: 'blocked' } }],
  ['HTTP/1.1 502 Bad Gateway\r\n\r\n', { kind: 'transient', error: { kind: 'network' } }],
  ['HTTP/1.1 407 Proxy Authentication Required\r\n\r\n', { kind: 'transient', error: { kind: 'network' } }],
  ['SSH-2.0-OpenSSH\r\n\r\n', { kind: 'transient', error: { kind: 'network' } }],
  ['x'.repeat(20_000), { kind: 'transient', error: { kind: 'network' } }],
])('a proxy that answers %.30j opens no tunnel, and nothing was sent', async (refusal, expected) => {
  const proxy = await startProxy({ refusal });
  const outcome = await through(proxy.url).deliver(targetAt('http://jobs.internal/run'), attemptOf(), never);
  expect(outcome).toMatchObject(expected);
});

test('what is to be called directly does not go through the proxy, and is judged by its addresses', async () => {
  const target = await receive((_, response) => response.end());
  const port = new URL(target.url).port;
  const proxy = await startProxy({ refusal: 'HTTP/1.1 403 Forbidden\r\n\r\n' });
  const [bypass, faults] = parseEgressBypass('jobs.local, .internal.test, 127.0.0.0/8');
  expect(faults).toEqual([]);
  const egress = parseEgressProxy(proxy.url);
  const resolve = (name: string) =>
    Promise.resolve([{ address: name.startsWith('metadata') ? '169.254.169.254' : '127.0.0.1', family: 4 as const }]);
  const kind = httpTarget(2, { proxy: egress && { ...egress, bypass }, resolve });
  const call = async (host: string) =>
    (await kind.deliver(targetAt(`http://${host}:${port}/`), attemptOf(), never)).kind;
  for (const host of ['jobs.local', 'JOBS.local.', 'a.internal.test', '127.0.0.1'])
    expect([host, await call(host)]).toEqual([host, 'accepted']);
  expect(await call('metadata.internal.test')).toBe('blocked');
  expect(proxy.heads).toEqual([]);
  for (const host of ['internal.test', 'xinternal.test', 'other.local'])
    expect([host, await call(host)]).toEqual([host, 'blocked']);
  expect(proxy.heads).toHaveLength(3);
});

test.each([
  ['10.0.0.1/8', 'has bits set'],
  ['a b', 'is no host'],
  ['*.test', 'is no host'],
  ['http://x', 'is neither an address'],
  ['', 'is no host'],
])('%j is nothing that can be called directly', (text, said) => {
  expect(parseEgressBypass(`fine.test,${text}`)[1]).toMatchObject([
    { entry: text, message: expect.stringContaining(said) as string },
  ]);
});

test('an address in the URL is judged all the same, and the proxy does not hear of it', async () => {
  const proxy = await startProxy({ refusal: 'HTTP/1.1 200 OK\r\n\r\n' });
  const outcome = await through(proxy.url).deliver(targetAt('http://169.254.169.254/'), attemptOf(), never);
  expect(outcome.kind).toBe('blocked');
  expect(proxy.heads).toEqual([]);
});

test.each(['https://proxy:3128', 'proxy:3128', 'http://proxy:3128/path', 'http://proxy?x=1', ''])(
  '%j is no proxy',
  (text) => {
    expect(parseEgressProxy(text)).toBeNull();
  },
);
