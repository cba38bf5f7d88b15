import { type Server, createServer } from 'node:https';
import type { Socket } from 'node:net';
import type { PeerCertificate, TLSSocket } from 'node:tls';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { ConnectionTls } from '../../src/core/connections/connection.ts';
import type { Outcome } from '../../src/core/runs/attempts/outcome.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { createResolver } from '../../src/runtime/names/resolver.ts';
import { createAddressGuard } from '../../src/targets/address-guard.ts';
import { type TlsSettings, createDialWith } from '../../src/targets/http-connect.ts';
import { Exchange } from '../../src/targets/http-exchange.ts';
import { HttpPools } from '../../src/targets/http-pool.ts';
import { createAuthority } from '../support/certificates.ts';
import { listenOnLoopback } from '../support/loopback.ts';
import { ATTACK } from '../support/runner/attack.ts';
import { until } from '../support/until.ts';

const authority = createAuthority();
const stranger = createAuthority('stranger');
const first = { ca: authority.ca, ...authority.issue('first') };
const second = { ca: authority.ca, ...authority.issue('second') };
const none = { ca: authority.ca, cert: null, key: null };
const forged = { ca: authority.ca, ...stranger.issue('first') };

const DISTRUSTED = 'TLS failed: self-signed certificate in certificate chain';

describe('with the certificates of a connection', () => {
  test('a run is handed off under its certificate, over a kept connection', async () => {
    const { url, callers, sockets } = await mutualServer();
    const send = sender();
    for (let i = 0; i < 3; i++) expect(await send(url, { uid: 'a', tls: first })).toMatchObject(ACCEPTED);
    expect(callers).toEqual(['first', 'first', 'first']);
    expect(new Set(sockets).size).toBe(1);
  });

  test('a rotated certificate is shown from the next attempt on, and what was kept is closed', async () => {
    const { url, callers, sockets } = await mutualServer();
    const send = sender();
    for (const tls of [first, second, first]) expect(await send(url, { uid: 'a', tls })).toMatchObject(ACCEPTED);
    expect(callers).toEqual(['first', 'second', 'first']);
    await closed(sockets, [true, true, false]);
  });

  test('a connection that is in use when the certificate is rotated is closed after its answer', async () => {
    const { url, sockets, answer } = await mutualServer('answers when told');
    const send = sender();
    const underWay = send(url, { uid: 'a', tls: first });
    const answerFirst = await answer();
    const next = send(url, { uid: 'a', tls: second });
    (await answer())();
    expect(await next).toMatchObject(ACCEPTED);
    expect(sockets.map(({ destroyed }) => destroyed)).toEqual([false, false]);
    answerFirst();
    expect(await underWay).toMatchObject(ACCEPTED);
    await closed(sockets, [true, false]);
  });

  test('another authority is another connection too', async () => {
    const { url } = await mutualServer();
    const send = sender();
    expect(await send(url, { uid: 'a', tls: first })).toMatchObject(ACCEPTED);
    const outcome = await send(url, { uid: 'a', tls: { ...first, ca: stranger.ca } });
    expect(outcome).toMatchObject({ ...NOT_SENT, error: { kind: 'network', message: DISTRUSTED } });
  });

  test('both an authority of its own and the well-known ones can be trusted', async () => {
    const { url, callers } = await mutualServer('asks for no certificate');
    expect(await sender()(url, { uid: 'a', tls: { alsoTrusted: authority.ca } })).toMatchObject(ACCEPTED);
    expect(callers).toEqual([undefined]);
  });
});

describe('nothing was sent', () => {
  test.each([
    ['with the wrong authority', { ...first, ca: stranger.ca }, DISTRUSTED],
    ['without an authority of its own', { ...first, ca: null }, DISTRUSTED],
    ['with an authority that is none', { ...first, ca: 'none' }, DISTRUSTED],
    ['with a certificate that is none', { ...first, cert: 'none' }, 'TLS failed: no start line'],
    ['with a key that is none', { ...first, key: 'none' }, 'TLS failed: unsupported'],
    ['with the key of another', { ...first, key: second.key }, 'TLS failed: key values mismatch'],
  ])('%s', async (_, tls, message) => {
    const { url, callers } = await mutualServer();
    const outcome = await sender()(url, { uid: 'a', tls });
    expect(outcome).toMatchObject({ ...NOT_SENT, error: { kind: 'network' } });
    expect(outcome).toHaveProperty('error.message', message);
    expect(callers).toEqual([]);
  });

  test.each([
    ['without', none],
    ['with a forged', forged],
  ])('%s certificate, where the server looks at it within the handshake (TLS 1.2)', async (_, tls) => {
    const { url, callers } = await mutualServer('speaks TLS 1.2');
    const outcome = await sender()(url, { uid: 'a', tls });
    expect(outcome).toMatchObject({ ...NOT_SENT, error: { kind: 'network' } });
    expect(outcome).toHaveProperty('error.message', expect.stringMatching(/^(TLS|connection) failed: /));
    expect(callers).toEqual([]);
  });
});

/** The handshake of TLS 1.3 ends for us before the server looks at our certificate: by then the request is on its way. */
test.each([
  ['without', none, 'tlsv13 alert certificate required'],
  ['with a forged', forged, ''],
])('%s certificate the outcome is unknown in TLS 1.3', async (_, tls, reason) => {
  const { url, callers } = await mutualServer();
  const outcome = await sender()(url, { uid: 'a', tls });
  expect(outcome).toMatchObject({ kind: 'unknown', error: { kind: 'network' } });
  expect(outcome).toHaveProperty('error.message', expect.stringContaining(`no answer came: ${reason}`));
  expect(JSON.stringify(outcome)).not.toContain('openssl');
  expect(callers).toEqual([]);
});

describe('kept connections and TLS sessions', { tags: [ATTACK] }, () => {
  test('of one connection are not used by another, nor by targets without one', async () => {
    const { url, callers, sockets, resumed } = await mutualServer('asks for no certificate by force');
    const send = sender();
    expect(await send(url, { uid: 'a', tls: first })).toMatchObject(ACCEPTED);
    expect(await send(url, { uid: 'b', tls: first })).toMatchObject(ACCEPTED);
    expect(await send(url, { uid: 'c', tls: none })).toMatchObject(ACCEPTED);
    expect(await send(url, null)).toMatchObject(NOT_SENT);
    expect(callers).toEqual(['first', 'first', undefined]);
    expect(new Set(sockets).size).toBe(3);
    expect(resumed).toEqual([false, false, false]);
  });

  test('are resumed by the same connection only', async () => {
    const { url, resumed, callers } = await mutualServer('asks for no certificate by force', 'closes');
    const send = sender();
    for (const tls of [first, first, second, none]) expect(await send(url, { uid: 'a', tls })).toMatchObject(ACCEPTED);
    // Whether the second one is, the garbage collector decides: undici holds sessions weakly.
    expect(resumed).toEqual([false, expect.any(Boolean), false, false]);
    expect(callers).toEqual(['first', 'first', 'second', undefined]);
  });
});

const ACCEPTED = { kind: 'accepted' };
const NOT_SENT = { kind: 'transient', statusCode: null, senderStopped: false };

type Manner =
  'answers when told' | 'asks for no certificate' | 'asks for no certificate by force' | 'closes' | 'speaks TLS 1.2';

/** Asks for a certificate of the authority. `callers` are the names in the certificates that requests came with. */
async function mutualServer(...manners: Manner[]) {
  const names = new Map<Socket, PeerCertificate['subject']['CN'] | undefined>();
  const callers: unknown[] = [];
  const sockets: TLSSocket[] = [];
  const resumed: boolean[] = [];
  const ready: (() => void)[] = [];
  const server: Server = createServer(
    {
      ...authority.issue('server'),
      ca: authority.ca,
      requestCert: !manners.includes('asks for no certificate'),
      rejectUnauthorized: !manners.some((manner) => manner.startsWith('asks for no certificate')),
      ...(manners.includes('speaks TLS 1.2') && { maxVersion: 'TLSv1.2' }),
    },
    (request, response) => {
      callers.push(names.get(request.socket));
      if (manners.includes('closes')) response.setHeader('connection', 'close');
      if (!manners.includes('answers when told')) response.end();
      else ready.push(() => response.end());
      request.resume();
    },
  );
  server.on('secureConnection', (socket: TLSSocket) => {
    sockets.push(socket);
    resumed.push(socket.isSessionReused());
    // Without a certificate it is an empty object.
    const { subject } = socket.getPeerCertificate() as Partial<PeerCertificate>;
    names.set(socket, subject?.CN);
    socket.on('error', () => undefined);
  });
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    url: `https://127.0.0.1:${await listenOnLoopback(server)}`,
    callers,
    sockets,
    resumed,
    /** Once a request is there: ends it. */
    answer: () => until(() => ready.shift() ?? null),
  };
}

async function closed(sockets: TLSSocket[], expected: boolean[]): Promise<void> {
  await until(() => (sockets.every(({ destroyed }, index) => destroyed === expected[index]) ? true : null));
}

type Send = (url: string, owner: { uid: string; tls: TlsSettings | ConnectionTls<string> } | null) => Promise<Outcome>;

function sender(): Send {
  const pools = new HttpPools({
    dialWith: createDialWith({ guard: createAddressGuard(), resolve: createResolver(), proxy: null }),
    connectionsPerOrigin: 4,
    mostIdle: 16,
    maxIdleMs: 30_000,
  });
  onTestFinished(() => pools.close());
  return (url, owner) =>
    new Promise((resolve) => {
      const { origin } = new URL(url);
      const head = { origin, path: '/', method: 'POST', headers: [] } as const;
      const exchange = new Exchange({
        request: { head, finish: () => ({ ...head, headers: [], body: '{}' }) },
        pool: pools.poolOf(origin, owner),
        clock: systemClock,
        timeoutSeconds: 60,
        judging: { rules: null, delivery: 'atLeastOnce', asked: false },
        freshConnection: false,
        mayStart: () => true,
        onEnd: (_, outcome) => resolve(outcome),
      });
      exchange.begin();
    });
}
