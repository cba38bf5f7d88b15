import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { parseEgressProxy } from '../../src/config/egress-proxy.ts';
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
