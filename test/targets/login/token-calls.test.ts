import { createServer } from 'node:https';
import type { TLSSocket } from 'node:tls';
import { describe, expect, onTestFinished, test } from 'vitest';
import { parseEgressProxy } from '../../../src/config/egress-proxy.ts';
import type { OAuthClient } from '../../../src/core/connections/connection.ts';
import type { FirelockEvent } from '../../../src/core/events.ts';
import { systemClock } from '../../../src/runtime/clock.ts';
import { createResolver } from '../../../src/runtime/names/resolver.ts';
import { AddressBlocked, createAddressGuard } from '../../../src/targets/address-guard.ts';
import { createDialWith } from '../../../src/targets/http-connect.ts';
import { HttpPools } from '../../../src/targets/http-pool.ts';
import { NoToken } from '../../../src/targets/login/oauth-tokens.ts';
import { TokenCalls } from '../../../src/targets/login/token-calls.ts';
import { createAuthority } from '../../support/certificates.ts';
import { freePort, listenOnLoopback } from '../../support/loopback.ts';
import { ATTACK } from '../../support/runner/attack.ts';
import { answerWith, receive, receiveTcp } from '../receivers.ts';
import { tokenClient } from './clients.ts';

const TOKEN = { access_token: 'a.token', token_type: 'Bearer', expires_in: 3600 };

test('a token is asked for with the credentials, encoded as a form and then as Basic', async () => {
  const { url, arrivals } = await tokenServer(TOKEN);
  const auth = {
    clientId: 'id:ä +',
    clientSecret: 's/€%:',
    scope: 'read write',
    audience: 'https://api.example/&',
  };
  expect(await fetchFrom(`${url}/oauth/token?tenant=1`, auth)).toEqual({
    token: 'a.token',
    lifetimeSeconds: 3600,
  });
  expect(arrivals).toMatchObject([
    {
      method: 'POST',
      url: '/oauth/token?tenant=1',
      headers: {
        'user-agent': 'firelock/1.2.3',
        accept: 'application/json',
        authorization: `Basic ${Buffer.from('id%3A%C3%A4+%2B:s%2F%E2%82%AC%25%3A').toString('base64')}`,
        'content-type': 'application/x-www-form-urlencoded',
      },
      body: 'grant_type=client_credentials&scope=read+write&audience=https%3A%2F%2Fapi.example%2F%26',
    },
  ]);
});

test('neither a scope nor an audience is sent that there is not', async () => {
  const { url, arrivals } = await tokenServer(TOKEN);
  await fetchFrom(url);
  expect(arrivals).toMatchObject([{ body: 'grant_type=client_credentials' }]);
});

test.each([
  [3600, 3600],
  ['3600', 3600],
  [0, 0],
  [undefined, null],
  [null, null],
  [-1, null],
  ['soon', null],
  [{}, null],
])('a lifetime of %j is understood as %j', async (lifetime, lifetimeSeconds) => {
  const { url } = await tokenServer({ ...TOKEN, token_type: 'bEARER', expires_in: lifetime });
  expect(await fetchFrom(url)).toEqual({ token: 'a.token', lifetimeSeconds });
});

describe('there is no token', () => {
  test.each([
    [400, { error: 'invalid_scope', error_description: 'a-secret is wrong' }, 'answered 400 (invalid_scope)'],
    [401, { error: 'invalid_client' }, 'answered 401 (invalid_client)'],
    [503, 'Service unavailable for a-secret', 'answered 503'],
    // Whatever else it says: it may be what it was sent, in another form.
    [200, { error: 'bad_verification_code' }, 'answered 200'],
    [401, { error: Buffer.from('an-id:a-secret').toString('base64url') }, 'answered 401'],
    [302, '', 'answered 302'],
    [200, '', 'answered 200 without access_token'],
    [200, '[]', 'answered 200 without access_token'],
    [200, 'null', 'answered 200 without access_token'],
    [200, { ...TOKEN, access_token: 7 }, 'answered 200 without access_token'],
    [200, { ...TOKEN, token_type: 'mac' }, 'answered 200 with a token_type that is not Bearer'],
    [200, { access_token: 'a.token' }, 'answered 200 with a token_type that is not Bearer'],
    [200, { ...TOKEN, access_token: 'a\r\nx: y' }, 'answered 200 with a token that no header can carry'],
    [200, { ...TOKEN, access_token: 'a token' }, 'answered 200 with a token that no header can carry'],
    [200, { ...TOKEN, access_token: 'tökén' }, 'answered 200 with a token that no header can carry'],
    [200, { ...TOKEN, access_token: 'x'.repeat(20_000) }, 'answered 200 with a token that no header can carry'],
    [200, { ...TOKEN, padding: 'x'.repeat(70_000) }, 'answered 200 without access_token'],
  ])('in the answer %i %.60j', async (status, answer, message) => {
    const { url } = await tokenServer(answer, status);
    await expect(fetchFrom(url)).rejects.toThrow(new NoToken(`no access token: the token server ${message}`));
  });

  test('from a server that is not there, or breaks off', async () => {
    await expect(fetchFrom(`http://127.0.0.1:${await freePort()}`)).rejects.toThrow(
      'no access token: the token server: connection failed: connect ECONNREFUSED',
    );
    const broken = await receiveTcp((socket) => socket.once('data', () => socket.destroy()));
    await expect(fetchFrom(broken)).rejects.toThrow('no access token: the token server: the request was sent');
  });

  test('at a URL that is none', async () => {
    await expect(fetchFrom('nonsense')).rejects.toThrow('no access token: the URL of the token server is none');
  });

  test('when the daemon stops', async () => {
    const asked = Promise.withResolvers<undefined>();
    const url = await receiveTcp((socket) => socket.once('data', () => asked.resolve(undefined)));
    const calls = tokenCalls();
    const fetching = calls.fetch(tokenClient({ auth: { tokenUrl: url } }));
    await asked.promise;
    calls.stop();
    await expect(fetching).rejects.toThrow('firelock stopped before the target answered');
  });
});

describe('a token server', { tags: [ATTACK] }, () => {
  test('that sends a redirect is not followed with the credentials', async () => {
    const elsewhere = await receive();
    const redirect = `HTTP/1.1 307 Elsewhere\r\nlocation: ${elsewhere.url}\r\ncontent-length: 0\r\n\r\n`;
    await expect(fetchFrom(await answerWith(redirect))).rejects.toThrow('answered 307');
    expect(elsewhere.arrivals).toEqual([]);
  });

  test.each(['a-secret', 'is-a-secret-known', 'x'.repeat(65), 'two words', 'a\nb', 7, {}])(
    'cannot bring %.20j into a message',
    async (error) => {
      const { url } = await tokenServer({ error }, 400);
      await expect(fetchFrom(url)).rejects.toThrow(new NoToken('no access token: the token server answered 400'));
    },
  );

  test('that never ends its answer is cut off', async () => {
    const head = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nfffffff\r\n';
    const url = await answerWith(head + 'y'.repeat(1024 * 1024));
    await expect(fetchFrom(url)).rejects.toThrow('answered 200 without access_token');
  });

  test('at a blocked address is not called, and the operator learns which', async () => {
    const { url, arrivals } = await tokenServer(TOKEN);
    const emitted: FirelockEvent[] = [];
    const calls = tokenCalls({
      guard: { judge: ([address = '']) => Promise.reject(new AddressBlocked(address, 'a test')) },
      events: { emit: (event) => void emitted.push(event), subscribe: () => undefined },
    });
    await expect(calls.fetch(tokenClient({ auth: { tokenUrl: url } }))).rejects.toThrow(
      'no access token: the token server: the address of the target is blocked',
    );
    expect(arrivals).toEqual([]);
    const by = { origin: url, address: '127.0.0.1', because: 'a test' };
    expect(emitted).toEqual([{ type: 'tokenServerBlocked', connectionUid: 'u-1', ...by }]);
  });

  test('is called through the egress proxy', async () => {
    const heads: string[] = [];
    const proxy = await receiveTcp((socket) =>
      socket.once('data', (head) => {
        heads.push(head.toString());
        socket.end('HTTP/1.1 403 Forbidden\r\n\r\n');
      }),
    );
    const calls = tokenCalls({ proxy: parseEgressProxy(proxy) });
    const tokenUrl = 'http://login.internal:8123/token';
    await expect(calls.fetch(tokenClient({ auth: { tokenUrl } }))).rejects.toThrow('is blocked');
    expect(heads).toEqual([expect.stringMatching(/^CONNECT login\.internal:8123 /)]);
  });
});

describe('the TLS settings of the connection', () => {
  const authority = createAuthority();
  const own = { ca: authority.ca, ...authority.issue('firelock') };

  test('hold for a token server at the same origin', async () => {
    const { url, callers } = await tlsServer();
    await tokenCalls().fetch(tokenClient({ url: `${url}/api`, tls: own, auth: { tokenUrl: `${url}/token` } }));
    expect(callers).toEqual(['firelock']);
  });

  test('at another origin are its authority only: no certificate is shown', { tags: [ATTACK] }, async () => {
    const { url, callers } = await tlsServer();
    await tokenCalls().fetch(tokenClient({ url: 'https://127.0.0.1', tls: own, auth: { tokenUrl: url } }));
    expect(callers).toEqual([undefined]);
  });

  test('without an authority mean nothing at another origin', async () => {
    const { url, callers } = await tlsServer();
    const client = tokenClient({ tls: { ...own, ca: null }, auth: { tokenUrl: url } });
    await expect(tokenCalls().fetch(client)).rejects.toThrow('TLS failed: self-signed certificate');
    expect(callers).toEqual([]);
  });

  async function tlsServer() {
    const callers: unknown[] = [];
    const server = createServer(
      { ...authority.issue('server'), ca: authority.ca, requestCert: true, rejectUnauthorized: false },
      (request, response) => {
        request.resume();
        response.end(JSON.stringify(TOKEN));
      },
    );
    server.on('secureConnection', (socket: TLSSocket) =>
      callers.push((socket.getPeerCertificate() as { subject?: { CN?: string } }).subject?.CN),
    );
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    return { url: `https://127.0.0.1:${await listenOnLoopback(server)}`, callers };
  }
});

function tokenServer(answer: unknown, status = 200) {
  const text = typeof answer === 'string' ? answer : JSON.stringify(answer);
  return receive((_, response) => response.writeHead(status).end(text));
}

function fetchFrom(tokenUrl: string, auth: Partial<OAuthClient<string>> = {}) {
  return tokenCalls().fetch(tokenClient({ auth: { ...auth, tokenUrl } }));
}

type Deps = ConstructorParameters<typeof TokenCalls>[0] & Parameters<typeof createDialWith>[0];

function tokenCalls(deps: Partial<Deps> = {}): TokenCalls {
  const { guard = createAddressGuard(), proxy = null, ...rest } = deps;
  const dialWith = createDialWith({ guard, proxy, resolve: createResolver() });
  const pools = new HttpPools({ dialWith, connectionsPerOrigin: 4, mostIdle: 16, maxIdleMs: 30_000 });
  onTestFinished(() => pools.close());
  return new TokenCalls({ pools, clock: systemClock, userAgent: 'firelock/1.2.3', ...rest });
}
