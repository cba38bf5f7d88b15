import { expect, it } from 'vitest';
import { readConfig } from '../../src/config/config.ts';
import { expectUnauthorized, newToken } from './access/support.ts';
import { SCHEDULE, sharedApi, startApi } from './api.ts';

const api = sharedApi({ basePath: '/ops/cron' });

it('everything answers below the base path, and nothing elsewhere', async () => {
  for (const path of ['/healthz', '/readyz', '/metrics', '/openapi.json', '/docs/', '/api/v1/schedules']) {
    expect([path, (await api.call('GET', `/ops/cron${path}`)).status]).toEqual([path, 200]);
    const elsewhere = await api.call('GET', path);
    expect([path, elsewhere.status]).toEqual([path, 404]);
    expect(elsewhere.headers.get('content-type')).toMatch(/^application\/problem\+json/);
  }
  for (const path of [
    '/',
    '/ops',
    '/ops/cron',
    '/ops/cron/nope',
    '/ops/cronapi/v1/schedules',
    '/OPS/cron/healthz',
  ])
    expect([path, (await api.call('GET', path)).status]).toEqual([path, 404]);
  expect((await api.call('DELETE', '/ops/cron/api/v1/runs')).status).toBe(405);
});

it('below it callers need a token, and elsewhere they do not', async () => {
  const { known, headers } = newToken('ci', 'viewer');
  const url = 'postgres://nobody:nothing@127.0.0.1:9/none';
  const guarded = await startApi(url, { basePath: '/cron', apiTokens: [known] });
  try {
    for (const path of ['/cron/api/v1', '/cron/api/v1/me', '/cron/api/v1/nope']) {
      expectUnauthorized(await guarded.call('GET', path));
      const { status } = await guarded.call('GET', path, undefined, headers);
      expect([path, status]).toEqual([path, path.endsWith('/me') ? 200 : 404]);
    }
    expect((await guarded.call('GET', '/cron/healthz')).status).toBe(200);
    expect((await guarded.call('GET', '/api/v1/me')).status).toBe(404);
  } finally {
    await guarded.stop();
  }
});

it('without tokens every caller is an admin without a name', async () => {
  const { body } = await api.call('GET', '/ops/cron/api/v1/me');
  expect(body).toEqual({ name: null, role: 'admin', scope: null });
});

it('Location headers lead to the thing that they name', async () => {
  const created = await api.call('PUT', '/ops/cron/api/v1/schedules/a', SCHEDULE);
  const fired = await api.call('POST', '/ops/cron/api/v1/schedules/a/fire');
  const recorded = await api.call('POST', '/ops/cron/api/v1/runs', { target: SCHEDULE.target });
  for (const { headers, body } of [created, fired, recorded]) {
    const location = headers.get('location') ?? '';
    expect(location).toMatch(/^\/ops\/cron\/api\/v1\//);
    expect((await api.call('GET', location)).body['id']).toBe(body['id']);
  }
});

it('the document names its server, and its pages find all their parts', async () => {
  const document = (await api.call('GET', '/ops/cron/openapi.json')).body;
  expect(document['servers']).toEqual([{ url: '/ops/cron' }]);
  const paths = Object.keys(document['paths'] ?? {});
  expect(paths).toContain('/api/v1/maintenance');
  expect(paths.filter((path) => path.startsWith('/ops'))).toEqual([]);
  for (const page of ['/ops/cron/docs/', '/ops/cron/docs']) {
    const { text } = await api.call('GET', page);
    const parts = [...text.matchAll(/(?:src|href)="([^"]+)"/g)].map(
      ([, part = '']) => new URL(part, api.url + page).pathname,
    );
    expect(parts.length).toBeGreaterThan(3);
    for (const part of parts) expect([part, (await api.call('GET', part)).status]).toEqual([part, 200]);
  }
  // Where its script gets the document from.
  expect((await api.call('GET', '/ops/cron/docs/json')).body).toEqual(document);
});

it('an unusable base path is refused, with a hint', () => {
  const faultsOf = (value: string) => {
    const read = readConfig({ FIRELOCK_BASE_PATH: value, FIRELOCK_ALLOW_ANONYMOUS: '1' });
    return 'faults' in read ? read.faults : [];
  };
  for (const good of ['/cron', '/ops/cron', '/a-b_c.d~1', '/...', '']) expect(faultsOf(good)).toEqual([]);
  for (const bad of [
    'cron',
    '/',
    '/cron/',
    '//cron',
    '/a b',
    '/a%20b',
    '/:id',
    '/*',
    '/a?b',
    '/..',
    '/a/../b',
    '/é',
  ])
    expect([bad, faultsOf(bad)]).toEqual([
      bad,
      [
        expect.stringMatching(
          /^FIRELOCK_BASE_PATH is ".*"; expected: what stands before every path, such as \/cron/,
        ),
      ],
    ]);
});
