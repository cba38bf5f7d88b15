import dns from 'node:dns';
import { type Socket, createServer } from 'node:net';
import { expect, onTestFinished, test, vi } from 'vitest';
import type { DatabaseTls } from '../../../src/config/database-url.ts';
import { openSocket } from '../../../src/postgres/connection/socket.ts';
import { hasNoAddress } from '../../../src/runtime/names/resolve.ts';
import { createResolver } from '../../../src/runtime/names/resolver.ts';
import { listenOnLoopback } from '../../support/loopback.ts';
import { ATTACK } from '../../support/runner/attack.ts';

const tls: DatabaseTls = { mode: 'disable', rootCertificate: null, own: null };
const ignore = () => undefined;

async function startServer(): Promise<number> {
  const server = createServer((socket) => socket.on('error', ignore).resume());
  onTestFinished(() => void server.close());
  return listenOnLoopback(server);
}

test('a server is found by its name, at each of its addresses in turn', { tags: [ATTACK] }, async () => {
  // Names of targets wait in this process's threads for nothing: the server's name needs none.
  const inThread = vi.spyOn(dns, 'lookup');
  onTestFinished(() => inThread.mockRestore());
  const port = await startServer();
  const resolve = createResolver({
    lookUp: () =>
      Promise.resolve({
        addresses: [
          { address: '::1', family: 6 },
          { address: '127.0.0.1', family: 4 },
        ],
        seconds: 1,
      }),
  });
  const socket = await openSocket({ name: 'db.test', port }, tls, ignore, resolve);
  expect([socket.remoteAddress, (socket as Socket & { host?: string }).host]).toEqual(['127.0.0.1', 'db.test']);
  socket.destroy();
  expect(inThread.mock.calls.filter(([host]) => host === 'db.test')).toEqual([]);
});

test('a name without an address is a lost connection, under the code that is known as one', async () => {
  const resolve = () => Promise.reject(hasNoAddress('db.test'));
  await expect(openSocket({ name: 'db.test', port: 1 }, tls, ignore, resolve)).rejects.toMatchObject({
    code: 'ENOTFOUND',
    message: 'db.test has no address',
  });
});

test('a connection that is given up ends the look-up of its name', async () => {
  const asked: AbortSignal[] = [];
  const resolve = createResolver({
    lookUp: (_, signal) => {
      asked.push(signal);
      return new Promise((_found, refuse) => signal.addEventListener('abort', () => refuse(new Error('ended'))));
    },
  });
  let begun: Socket | undefined;
  const opening = openSocket({ name: 'db.test', port: 1 }, tls, (socket) => (begun = socket), resolve);
  expect(asked.map(({ aborted }) => aborted)).toEqual([false]);
  begun?.destroy();
  await expect(opening).rejects.toMatchObject({ code: 'CONNECTION_CLOSED' });
  expect(asked.map(({ aborted }) => aborted)).toEqual([true]);
});
