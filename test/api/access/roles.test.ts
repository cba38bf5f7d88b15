// @module-tag attack
import { readFileSync } from 'node:fs';
import Fastify from 'fastify';
import { expect, test } from 'vitest';
import type { Database } from '../../../src/postgres/database.ts';
import { guardRoutes } from '../../../src/api/access/guard.ts';
import type { Api as Server } from '../../../src/api/deps.ts';
import { ROLES, type RoleNeeded, mayCall } from '../../../src/core/access/roles.ts';
import { SCHEDULE, sharedApi } from '../api.ts';
import { expectUnauthorized, newToken, settableClock } from './support.ts';

const tokens = Object.fromEntries(ROLES.map((role) => [role, newToken(`the-${role}`, role)])) as Record<
  (typeof ROLES)[number],
  ReturnType<typeof newToken>
>;

const clock = settableClock();
const api = sharedApi({ clock, apiTokens: ROLES.map((role) => tokens[role].known) });

interface Operation {
  operationId: string;
  security?: { bearer: string[] }[];
  responses: object;
}

/** Every call of the API, from its own document. */
const calls = Object.entries(
  (
    JSON.parse(readFileSync('openapi/openapi.json', 'utf8')) as {
      paths: Record<string, Record<string, Operation>>;
    }
  ).paths,
).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
);
const guarded = calls.filter(({ path }) => path.startsWith('/api/v1/'));

/** The contract's rule; a call that it does not name changes the configuration. */
function roleOf(method: string, path: string): RoleNeeded {
  const call = path.replace('/api/v1', '');
  if (call === '/me' || call === '/session') return 'any';
  if (call.endsWith('/log')) return method === 'GET' ? 'any' : 'worker';
  if (method === 'GET') return ['/verify', '/audit'].includes(call) ? 'operator' : 'viewer';
  if (call === '/preview') return 'viewer';
  if (/^\/queues\/[^/]+\/claim$|^\/runs\/[^/]+\/(complete|heartbeat|release)$/.test(call)) return 'worker';
  if (/^\/runs(\/batch|\/bulk)?$|^\/runs\/[^/]+\/(cancel|retry)$/.test(call)) return 'operator';
  if (/^\/schedules\/[^/]+\/(fire|backfill|skip|unskip|ping-key)$/.test(call)) return 'operator';
  return 'admin';
}

const url = (path: string) => path.replaceAll(/\{[^}]+\}/g, '019b76da-a800-7000-8000-000000000000');

test('there are calls for every role', () => {
  expect(guarded.length).toBeGreaterThan(25);
  expect(new Set(guarded.map(({ method, path }) => roleOf(method, path)))).toEqual(
    new Set(['any', 'viewer', 'worker', 'operator', 'admin']),
  );
});

test.each(guarded.map(({ method, path, operation }) => [method, path, operation] as const))(
  '%s %s is open to the roles of the contract, and says so in the document',
  async (method, path, { security, responses }) => {
    const needed = roleOf(method, path);
    expect(security).toEqual([{ bearer: needed === 'any' ? [] : [needed] }]);
    expect(Object.keys(responses)).toEqual(expect.arrayContaining(['401', '403', '429']));
    expectUnauthorized(await callWithout(method, url(path)));
    for (const role of ROLES) {
      const answer = await api.call(method, url(path), undefined, tokens[role].headers);
      expect([role, answer.status === 403]).toEqual([role, !mayCall(role, needed)]);
      expect([401, 405, 429, 500]).not.toContain(answer.status);
      if (answer.status !== 403) continue;
      expect(answer.body['detail']).toBe(`this call needs the role ${needed}; yours is ${role}`);
    }
    if (method !== 'GET') return;
    const head = await api.call('HEAD', url(path), undefined, tokens.worker.headers);
    expect(head.status === 403).toBe(!mayCall('worker', needed));
  },
);

test('outside of the API no call needs a token, and the document says so', async () => {
  for (const path of ['/healthz', '/readyz', '/metrics', '/openapi.json', '/docs/']) {
    expect([path, (await api.call('GET', path)).status]).toEqual([path, 200]);
  }
  for (const { path, operation } of calls) {
    if (!path.startsWith('/api/')) expect([path, operation.security]).toEqual([path, undefined]);
  }
});

test('no spelling of a path leads past the guard', async () => {
  for (const path of (
    '/api/v1/instances/ /api/v1//instances /api/%761/instances /api/v1/%69nstances ' +
    '/api/v1/instances?authorization=x /api/v1/instances;x /api/v1%2Finstances /./api/v1/instances ' +
    '/x/../api/v1/instances'
  ).split(' ')) {
    clock.forward(60_000);
    const sent = await api.raw(`GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`);
    expect([path, /^HTTP\/1\.1 (401|404) /.test(sent)]).toEqual([path, true]);
  }
});

test('every caller can ask who it is, and what it may do', async () => {
  for (const role of ROLES) {
    const { status, body } = await api.call('GET', '/api/v1/me', undefined, tokens[role].headers);
    expect([status, body]).toEqual([200, { name: `the-${role}`, role, scope: null }]);
  }
});

test('the body of a refused call is not read: nothing of it is stored', async () => {
  const put = await api.call('PUT', '/api/v1/schedules/forbidden', SCHEDULE, tokens.operator.headers);
  expect(put.status).toBe(403);
  const found = await api.call('GET', '/api/v1/schedules/forbidden', undefined, tokens.viewer.headers);
  expect(found.status).toBe(404);
});

test('a route that names no role cannot be added', () => {
  const server = Fastify() as unknown as Server;
  const strangers = { letIn: () => undefined, refused: () => undefined, waits: () => () => undefined };
  const database = {} as Database;
  guardRoutes(server, { access: api.access, strangers, database, onRefused: () => undefined });
  expect(() => server.get('/forgotten', () => ({}))).toThrow(
    /^the route GET \/forgotten does not say who may call it: add "config: \{ role: … \}"/,
  );
  expect(() => server.get('/said', { config: { role: 'viewer', scope: 'itself' } }, () => ({}))).not.toThrow();
  expect(() => server.post('/forgotten', { config: { role: 'admin', scope: 'itself' } }, () => ({}))).toThrow(
    /^the route POST \/forgotten does not say what it writes into the audit: add "audits: \[ … \]"/,
  );
  expect(() => server.get('/unbounded', { config: { role: 'viewer' } }, () => ({}))).toThrow(
    /^the route GET \/unbounded does not say how it keeps to the caller's scope/,
  );
  const config = { role: 'admin', scope: 'unscoped', audits: ['schedule.create'] } as const;
  expect(() => server.post('/said', { config }, () => ({}))).not.toThrow();
});

/** So late after the last failure that nothing is said of their number. */
function callWithout(method: string, path: string) {
  clock.forward(60_000);
  return api.call(method, path);
}
