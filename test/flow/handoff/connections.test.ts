import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { ConnectionFields } from '../../../src/core/connections/connection.ts';
import type { Definition, HttpTarget } from '../../../src/core/schedules/schedule.ts';
import { sealTarget } from '../../../src/core/schedules/target-secrets.ts';
import { createEventBus } from '../../../src/runtime/event-bus.ts';
import { findRun } from '../../../src/store/runs/search/find-runs.ts';
import { putConnection } from '../../support/named.ts';
import { askingForCertificates, createAuthority } from '../../support/certificates.ts';
import { instanceOfTest, receiverOfTest, storeOfTest, eachTest } from '../../support/of-test.ts';
import type { InstanceOptions, TestInstance } from '../../support/pipeline.ts';
import type { Answer, Receiver } from '../../support/receiver.ts';
import { ATTACK } from '../../support/runner/attack.ts';
import { SECRETS } from '../../support/secrets.ts';
import { targetAt } from '../../support/targets.ts';
import { until } from '../../support/until.ts';

const store = eachTest(storeOfTest);

const RETRY = { maxAttempts: 3, minBackoffSeconds: 0.05, maxBackoffSeconds: 0.05 };
const start = async (options: InstanceOptions = {}) => {
  const instance = await instanceOfTest(store, options);
  await instance.start();
  return instance;
};

const connect = (id: string, given: Partial<ConnectionFields> & { url: string }): Promise<unknown> =>
  putConnection({ database: store.database, events: createEventBus() }, id, given);

/** Ends with the run of a schedule whose target names the connection. */
async function run(
  instance: TestInstance,
  target: Partial<HttpTarget<string>> & { connection: string },
  { url = '/hook', ...more }: Partial<Definition> & { url?: string } = {},
) {
  const id = `s-${Math.random().toString(36).slice(2)}`;
  const given = targetAt(url, target);
  const { uid } = await instance.put(id, { url: '', retry: RETRY, ...more, target: given });
  const sealed = sealTarget(given, { ring: SECRETS, uid, before: null }).target;
  await instance.put(id, { url: '', retry: RETRY, ...more, target: sealed });
  const { id: runId } = await instance.fire(id);
  return runId;
}

const ended = (runId: string) =>
  until(async () => {
    const found = await store.database.run((db) => findRun(db, runId, null));
    return found?.finishedAt ? found : null;
  });

it('a call goes below the URL of the connection, with its headers and its login, which the target cannot override', async () => {
  const receiver = await receiverOfTest();
  const auth = { type: 'bearer', token: 't0ken' } as const;
  await connect('api', { url: `${receiver.url}/v1/`, headers: { 'X-Team': 'billing' }, auth });
  const instance = await start();
  const headers = { Authorization: 'Bearer mine', 'x-team': 'mine', Accept: 'text/plain' };
  const id = await run(instance, { connection: 'api', headers }, { url: '/jobs/{{runId}}?at={{scheduledFor}}' });
  expect(await ended(id)).toMatchObject({ status: 'succeeded' });
  const [arrival] = receiver.arrivals;
  expect(arrival?.path).toMatch(new RegExp(`^/v1/jobs/${id}\\?at=2\\d{3}-`));
  expect(arrival?.headers).toMatchObject({
    authorization: 'Bearer t0ken',
    'x-team': 'billing',
    accept: 'text/plain',
  });
});

it('a user name and a password are sent as HTTP Basic has them', async () => {
  const receiver = await receiverOfTest();
  await connect('basic', {
    url: receiver.url,
    auth: { type: 'basic', username: 'Aladdin', password: 'open sesame' },
  });
  await ended(await run(await start(), { connection: 'basic' }));
  expect(receiver.arrivals[0]?.headers.authorization).toBe('Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==');
});

it('a change is in force from the next attempt on, of a run that is open too', async () => {
  const { url, arrivals } = await receiverOfTest(({ headers }, response) => {
    if (headers.authorization === 'Bearer new') response.end();
    else void connect('api', { url, auth: { type: 'bearer', token: 'new' } }).then(() => response.writeHead(500).end());
  });
  await connect('api', { url, auth: { type: 'bearer', token: 'old' } });
  expect(await ended(await run(await start(), { connection: 'api' }))).toMatchObject({
    status: 'succeeded',
    attempts: 2,
  });
  expect(arrivals.map(({ headers }) => headers.authorization)).toEqual(['Bearer old', 'Bearer new']);
});

it('without the connection nothing is sent, and the run says why', async () => {
  await connect('gone', { url: 'http://127.0.0.1:1' });
  const instance = await instanceOfTest(store);
  const id = await run(instance, { connection: 'gone' });
  await store.rows(sql`DELETE FROM connections`);
  await instance.start();
  expect(await ended(id)).toMatchObject({
    status: 'failed',
    failures: 3,
    error: { kind: 'network', message: 'nothing was sent: the connection gone does not exist' },
    attemptLog: [{ outcome: 'transient' }, { outcome: 'transient' }, { outcome: 'transient' }],
  });
});

it('a token in a file is read anew when the file changes; a file that is not there sends nothing', async () => {
  const secretsDir = mkdtempSync(join(tmpdir(), 'firelock-secrets-'));
  onTestFinished(() => rmSync(secretsDir, { recursive: true }));
  const receiver = await receiverOfTest();
  await connect('api', { url: receiver.url, auth: { type: 'bearer', token: { file: 'token', seal: null } } });
  const instance = await start({ secretsDir });
  expect(await ended(await run(instance, { connection: 'api' }))).toMatchObject({
    status: 'failed',
    error: { message: expect.stringMatching(/^nothing was sent: the connection api: .*"token"/) as string },
  });
  writeFileSync(join(secretsDir, 'token'), 'first\n');
  await ended(await run(instance, { connection: 'api' }));
  writeFileSync(join(secretsDir, 'token'), 'the second\n');
  await ended(await run(instance, { connection: 'api' }));
  expect(receiver.arrivals.map(({ headers }) => headers.authorization)).toEqual(['Bearer first', 'Bearer the second']);
});

it('the lookup and the cancel call go through the connection too', async () => {
  const receiver = await receiverOfTest(({ path }, response) => {
    if (path === '/v1/hook') response.destroy();
    else response.end('{"status":"running"}');
  });
  await connect('api', { url: `${receiver.url}/v1`, auth: { type: 'bearer', token: 't' } });
  const call = (url: string) => ({ url, method: 'POST', headers: {} }) as const;
  const target = { connection: 'api', lookup: call('/asked/{{runId}}'), cancel: call('/off/{{runId}}') };
  const instance = await start();
  const id = await run(instance, target, {
    delivery: 'atMostOnce',
    completion: 'callback',
  });
  await until(async () => (await store.database.run((db) => findRun(db, id, null)))?.status === 'running' || null);
  expect(receiver.arrivals.map(({ path, headers }) => [path, headers.authorization])).toEqual([
    ['/v1/hook', 'Bearer t'],
    [`/v1/asked/${id}`, 'Bearer t'],
  ]);
});

describe('OAuth 2 client credentials', () => {
  async function oauth(answer: Answer, url: string): Promise<Receiver> {
    const server = await receiverOfTest(answer);
    const client = { clientId: 'firelock', clientSecret: 'a secret', scope: 'jobs', audience: null };
    await connect('api', { url, auth: { type: 'oauth2', tokenUrl: `${server.url}/token`, ...client } });
    return server;
  }
  const token = (text: string) => JSON.stringify({ access_token: text, token_type: 'Bearer', expires_in: 3600 });

  it('one token serves all runs of the instance', async () => {
    const receiver = await receiverOfTest();
    const server = await oauth((_, response) => response.end(token('one')), receiver.url);
    const instance = await start();
    const runs = await Promise.all(Array.from({ length: 20 }, () => run(instance, { connection: 'api' })));
    for (const id of runs) expect(await ended(id)).toMatchObject({ status: 'succeeded' });
    expect(new Set(receiver.arrivals.map(({ headers }) => headers.authorization))).toEqual(new Set(['Bearer one']));
    expect(server.arrivals).toHaveLength(1);
    expect(server.arrivals[0]?.headers.authorization).toBe(
      `Basic ${Buffer.from('firelock:a+secret').toString('base64')}`,
    );
  });

  it('a token that is refused is replaced, and the call repeated once within the attempt, at most once too', async () => {
    let made = 0;
    let good = 'Bearer 2';
    const receiver = await receiverOfTest(({ headers }, response) => {
      response.writeHead(headers.authorization === good ? 200 : 401).end();
    });
    const server = await oauth((_, response) => response.end(token(String(++made))), receiver.url);
    const instance = await start();
    expect(await ended(await run(instance, { connection: 'api' }))).toMatchObject({
      status: 'succeeded',
      attempts: 1,
    });
    expect(receiver.arrivals.map(({ headers }) => headers.authorization)).toEqual(['Bearer 1', 'Bearer 2']);
    good = 'Bearer 4';
    await connect('api', {
      url: receiver.url,
      headers: { 'X-New': '1' },
      auth: {
        type: 'oauth2',
        tokenUrl: `${server.url}/token`,
        clientId: 'other',
        clientSecret: 'x',
        scope: null,
        audience: null,
      },
    });
    const once = await ended(await run(instance, { connection: 'api' }, { delivery: 'atMostOnce' }));
    expect(once).toMatchObject({ status: 'succeeded', attempts: 1 });
    expect(receiver.arrivals.map(({ headers }) => headers.authorization).slice(2)).toEqual(['Bearer 3', 'Bearer 4']);
  });

  it('at most once, a run whose token was refused is tried again if another cannot be had now', async () => {
    let down = false;
    const receiver = await receiverOfTest(({ headers }, response) => {
      down = headers.authorization === 'Bearer 1';
      response.writeHead(down ? 401 : 200).end();
    });
    const server = await oauth((_, response) => {
      if (down) response.writeHead(500).end();
      else response.end(token(String(server.arrivals.length)));
      down = false;
    }, receiver.url);
    const retry = { maxAttempts: 5, minBackoffSeconds: 1, maxBackoffSeconds: 1 };
    const once = await ended(await run(await start(), { connection: 'api' }, { delivery: 'atMostOnce', retry }));
    expect(once).toMatchObject({ status: 'succeeded' });
    expect(once.attemptLog[0]).toMatchObject({
      outcome: 'transient',
      error: { message: expect.stringContaining('the target answered 401, and then') as string },
    });
  });

  it('a target that refuses every token ends the run, and costs its token server two', { tags: [ATTACK] }, async () => {
    const receiver = await receiverOfTest((_, response) => response.writeHead(401).end());
    const server = await oauth((_, response) => response.end(token(String(Math.random()))), receiver.url);
    const instance = await start();
    expect(await ended(await run(instance, { connection: 'api' }))).toMatchObject({ status: 'failed' });
    expect(await ended(await run(instance, { connection: 'api' }))).toMatchObject({ status: 'failed' });
    expect(server.arrivals.length).toBeLessThanOrEqual(3);
  });

  it('at most once, the handoff begins once there is a token: a death before that is not unknown, and a time-out says so', async () => {
    const receiver = await receiverOfTest();
    const server = await oauth(() => undefined, receiver.url);
    const once = { delivery: 'atMostOnce', timeoutSeconds: 1, retry: { ...RETRY, maxAttempts: 1 } } as const;
    const id = await run(await start(), { connection: 'api' }, once);
    await server.arrived(1);
    expect(await store.rows(sql`SELECT status, handoff_started_at FROM runs WHERE id = ${id}`)).toEqual([
      { status: 'pending', handoff_started_at: null },
    ]);
    expect(await ended(id)).toMatchObject({
      status: 'failed',
      error: { kind: 'timeout', message: 'not sent: no access token within 1 s' },
      attemptLog: [{ outcome: 'transient' }],
    });
    expect(receiver.arrivals).toEqual([]);
  });

  it('a token server that hangs delays no other target', { tags: [ATTACK] }, async () => {
    const receiver = await receiverOfTest();
    await oauth(() => undefined, receiver.url);
    await connect('other', { url: receiver.url });
    const instance = await start({ concurrencyPerLane: 4 });
    const stuck = await Promise.all(
      Array.from({ length: 30 }, () => run(instance, { connection: 'api' }, { timeoutSeconds: 3600 })),
    );
    expect(await ended(await run(instance, { connection: 'other' }))).toMatchObject({ status: 'succeeded' });
    for (const id of stuck)
      expect(await store.database.run((db) => findRun(db, id, null))).toMatchObject({ finishedAt: null });
  });

  it(
    'a token server at an address that is not called is not asked, and the run says so',
    { tags: [ATTACK] },
    async () => {
      const client = { clientId: 'c', clientSecret: 's', scope: null, audience: null };
      await connect('api', {
        url: 'http://127.0.0.1:1',
        auth: { type: 'oauth2', tokenUrl: 'http://169.254.169.254/latest', ...client },
      });
      expect(await ended(await run(await start(), { connection: 'api' }))).toMatchObject({
        status: 'failed',
        error: { message: expect.stringContaining('blocked') as string },
      });
    },
  );
});

it('a system that asks for a certificate gets the one of the connection, and another authority is not believed', async () => {
  const authority = createAuthority();
  const { url, seen } = await askingForCertificates(authority);
  await connect('mtls', { url, tls: { ca: authority.ca, ...authority.issue('firelock') } });
  await connect('stranger', {
    url,
    tls: { ca: createAuthority('other').ca, ...authority.issue('firelock') },
  });
  const instance = await start();
  expect(await ended(await run(instance, { connection: 'mtls' }))).toMatchObject({ status: 'succeeded' });
  expect(await ended(await run(instance, { connection: 'stranger' }))).toMatchObject({
    status: 'failed',
    error: { kind: 'network', message: expect.stringContaining('TLS failed') as string },
  });
  expect(seen).toEqual(['firelock']);
});
