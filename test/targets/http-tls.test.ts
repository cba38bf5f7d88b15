import { readFileSync } from 'node:fs';
import { type Server, createServer } from 'node:https';
import type { Socket } from 'node:net';
import tls, { type TLSSocket } from 'node:tls';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { attemptOf, httpTarget, never, receiveTcp } from './receivers.ts';
import { listenOnLoopback } from '../support/loopback.ts';
import { settableTimers } from '../support/clocks.ts';
import { targetAt } from '../support/targets.ts';

/** Self-signed for 127.0.0.1 and localhost, made for these tests and used nowhere else. */
const fixtures = new URL('fixtures/', import.meta.url);
const cert = readFileSync(new URL('self-signed.cert.pem', fixtures), 'utf8');
const key = readFileSync(new URL('self-signed.key.pem', fixtures), 'utf8');

let server: Server;
let url: string;
const sockets: TLSSocket[] = [];
const deaths: string[] = [];
let requests = 0;
/** A request that gets no answer has arrived. */
let onSilence = () => undefined as unknown;
/** Of each request, in turn. */
const carriers: Socket[] = [];

beforeAll(async () => {
  server = createServer({ cert, key }, (request, response) => {
    requests++;
    carriers.push(request.socket);
    request.resume();
    if (request.url === '/silent') onSilence();
    else response.end('{"executionId":"e-1"}');
  });
  server.on('secureConnection', (socket: TLSSocket) => {
    sockets.push(socket);
    socket.on('error', (error: NodeJS.ErrnoException) => deaths.push(error.code ?? error.message));
  });
  url = `https://127.0.0.1:${await listenOnLoopback(server)}`;
});

afterAll(() => {
  server.closeAllConnections();
  server.close();
});

test('a certificate without a trusted issuer is a failed connection', async () => {
  const outcome = await httpTarget().deliver(targetAt(url), attemptOf(), never);
  expect(outcome).toMatchObject({ kind: 'transient', error: { kind: 'network' } });
  expect(outcome).toHaveProperty('error.message', expect.stringMatching(/^TLS failed: self-signed certificate/));
  expect(requests).toBe(0);
});

test('a server that speaks no TLS is a failed connection', async () => {
  const plain = await receiveTcp((socket) => socket.once('data', () => socket.end('HTTP/1.1 400 Bad\r\n\r\n')));
  const outcome = await httpTarget().deliver(targetAt(plain.replace('http:', 'https:')), attemptOf(), never);
  expect(outcome).toMatchObject({ kind: 'transient', error: { kind: 'network' } });
  expect(outcome).toHaveProperty('error.message', expect.stringMatching(/^TLS failed: /));
});

test('a handshake that hangs until the deadline has sent nothing', async () => {
  const { pass } = settableTimers();
  const begun = Promise.withResolvers<unknown>();
  const stalled = await receiveTcp((socket) => socket.once('data', begun.resolve));
  const target = targetAt(stalled.replace('http:', 'https:'));
  const outcome = httpTarget().deliver(target, attemptOf({ timeoutSeconds: 3 }), never);
  await begun.promise;
  pass(3);
  expect(await outcome).toMatchObject({ kind: 'transient', error: { kind: 'timeout' } });
});

test('over TLS a run is handed off on a kept connection, and given up by a reset', async () => {
  trustCertificate();
  const kind = httpTarget(1);
  const before = sockets.length;
  for (let i = 0; i < 2; i++) {
    const outcome = await kind.deliver(targetAt(url), attemptOf(), never);
    expect(outcome).toMatchObject({ kind: 'accepted', executionId: 'e-1' });
  }
  expect(sockets).toHaveLength(before + 1);
  const closed = new Promise((resolve) => sockets[before]?.once('close', resolve));
  const { pass } = settableTimers();
  const arrived = new Promise((resolve) => (onSilence = () => resolve(undefined)));
  const outcome = kind.deliver(targetAt(`${url}/silent`), attemptOf({ timeoutSeconds: 3 }), never);
  await arrived;
  pass(3);
  expect(await outcome).toMatchObject({ kind: 'unknown', error: { kind: 'timeout' } });
  await closed;
  expect(deaths).toContain('ECONNRESET');
});

test('over TLS an attempt that may no longer start writes nothing, and at most once has a connection to itself', async () => {
  trustCertificate();
  const kind = httpTarget(1);
  const requestsBefore = requests;
  const refused = await kind.deliver(targetAt(url), attemptOf({ mayStart: () => false }), never);
  expect(refused).toMatchObject({ kind: 'transient', senderStopped: true });
  for (let i = 0; i < 2; i++) {
    const outcome = await kind.deliver(targetAt(url), attemptOf({ delivery: 'atMostOnce' }), never);
    expect(outcome).toMatchObject({ kind: 'accepted' });
  }
  expect(requests - requestsBefore).toBe(2);
  expect(new Set(carriers.slice(requestsBefore)).size).toBe(2);
});

/** Until the test ends: the files that this process runs next trust no certificate of these tests. */
function trustCertificate(): void {
  const trusted = tls.getCACertificates('default');
  onTestFinished(() => tls.setDefaultCACertificates(trusted));
  tls.setDefaultCACertificates([cert]);
}
