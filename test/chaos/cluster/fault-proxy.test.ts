import { once } from 'node:events';
import { type Socket, connect, createServer } from 'node:net';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { listenOnLoopback } from '../../support/loopback.ts';
import { type FaultProxy, startFaultProxy } from './fault-proxy.ts';

/** The server behind the proxy; it answers when it is told to. */
const server = createServer();
let proxy: FaultProxy;

beforeEach(async () => {
  proxy = await startFaultProxy(`postgres://127.0.0.1:${await listenOnLoopback(server)}/any`);
});

afterEach(async () => {
  await proxy.close();
  server.close();
  await once(server, 'close');
});

/** A question that the server has, and has not answered yet. */
async function asked(): Promise<{ client: Socket; atServer: Socket }> {
  const accepted = once(server, 'connection') as Promise<[Socket]>;
  const client = connect(Number(new URL(proxy.url).port), '127.0.0.1');
  const [atServer] = await accepted;
  atServer.on('error', () => undefined);
  const arrived = once(atServer, 'data');
  client.write('question');
  await arrived;
  return { client, atServer };
}

it('resets a connection whose answer it swallowed, also where the question was passed on before answers were lost', async () => {
  const { client, atServer } = await asked();
  const [failed, seen] = [once(client, 'error'), [] as Buffer[]];
  client.on('data', (chunk) => seen.push(chunk));
  proxy.set('lose');
  atServer.write('answer');
  const [error] = (await failed) as [NodeJS.ErrnoException];
  expect(error.code).toBe('ECONNRESET');
  expect(seen).toEqual([]);
});

it('passes on an answer that comes once answers are no longer lost', async () => {
  const { client, atServer } = await asked();
  proxy.set('lose');
  proxy.set('open');
  const answered = once(client, 'data');
  atServer.write('answer');
  expect(String((await answered)[0])).toBe('answer');
  client.destroy();
});
