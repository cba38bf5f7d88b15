import { readFile } from 'node:fs/promises';
import { describe, expect, test, vi, it, onTestFinished } from 'vitest';
import { type Answer, SCHEDULE, sharedApi, startApi } from './api.ts';
import { newToken, expectUnauthorized } from './access/support.ts';
import { readConfig } from '../../src/config/config.ts';

const api = sharedApi();

test('an unknown path is a 404 problem', async () => {
  for (const path of [
    '/',
    '/api',
    '/api/v1',
    '/api/v1/nope',
    '/api/v2/schedules',
    '/api/v1/schedules/a/b/c',
    '/API/v1/runs',
  ]) {
    const answer = await api.call('GET', path);
    expect([path, answer.status]).toEqual([path, 404]);
    expect(answer.headers.get('content-type')).toMatch(/^application\/problem\+json/);
    expect(answer.body).toEqual({
      type: 'about:blank',
      title: 'Not Found',
      status: 404,
      detail: expect.any(String) as string,
    });
  }
});

test('HEAD answers as GET does, without the body', async () => {
  await api.call('PUT', '/api/v1/schedules/head', SCHEDULE);
  for (const path of ['/api/v1/schedules/head', '/api/v1/schedules?limit=1', '/api/v1/runs', '/healthz', '/readyz']) {
    const [head, get] = [await api.call('HEAD', path), await api.call('GET', path)];
    expect([path, head.status, head.text]).toEqual([path, get.status, '']);
    for (const name of ['content-type', 'content-length', 'etag']) {
      expect([name, head.headers.get(name)]).toEqual([name, get.headers.get(name)]);
    }
  }
  expect((await api.call('HEAD', '/api/v1/schedules/nobody')).status).toBe(404);
});

describe('signs of life', () => {
  test('healthz, readyz and metrics answer outside the API', async () => {
    expect((await api.call('GET', '/healthz')).body).toEqual({ status: 'ok' });
    expect((await api.call('GET', '/readyz')).body).toEqual({
      status: 'ready',
      checks: { migrations: 'ok' },
      warnings: [],
    });
    const metrics = await api.call('GET', '/metrics');
    expect([metrics.status, metrics.text]).toEqual([200, 'up 1\n']);
    expect(metrics.headers.get('content-type')).toMatch(/^text\/plain; version=0.0.4/);
  });

  test('readyz is 503 if something is wrong', async () => {
    api.readiness.status = 'unavailable';
    const answer = await api.call('GET', '/readyz');
    api.readiness.status = 'ready';
    expect([answer.status, answer.body['status']]).toEqual([503, 'unavailable']);
  });
});

describe('without a database', () => {
  const calls = [
    ['GET', '/api/v1/schedules', undefined],
    ['PUT', '/api/v1/schedules/a', SCHEDULE],
    ['POST', '/api/v1/schedules/batch', { items: [{ id: 'a', ...SCHEDULE }] }],
    ['POST', '/api/v1/schedules/a/fire', undefined],
    ['POST', '/api/v1/preview', { cron: '* * * * *' }],
    ['GET', '/api/v1/runs/019b76da-a800-7000-8000-000000000000', undefined],
    ['POST', '/api/v1/runs', { target: SCHEDULE.target }],
    ['POST', '/api/v1/runs/batch', { items: [{ ref: 'a', target: SCHEDULE.target }] }],
    ['POST', '/api/v1/runs/019b76da-a800-7000-8000-000000000000/complete', { status: 'failed' }],
    ['POST', '/api/v1/runs/019b76da-a800-7000-8000-000000000000/heartbeat', undefined],
    ['GET', '/api/v1/instances', undefined],
  ] as const;

  test('every call is 503 with Retry-After, and the process is alive', async () => {
    const lost = await startApi('postgres://nobody:nothing@127.0.0.1:9/none');
    for (const [method, path, body] of calls) {
      const answer = await lost.call(method, path, body);
      expect([method, path, answer.status, answer.headers.get('retry-after')]).toEqual([method, path, 503, '5']);
      expect(answer.body).toEqual({
        type: 'about:blank',
        title: 'Service Unavailable',
        status: 503,
        detail: 'the database is out of reach',
      });
    }
    expect((await lost.call('GET', '/healthz')).status).toBe(200);
    // An outage is told by the daemon's loops, once, and not for each call.
    expect(lost.warnings).toEqual([]);
    await lost.stop();
  });

  test('or before it is migrated', async () => {
    api.readiness.checks = { migrations: 'waiting' };
    for (const [method, path, body] of calls) {
      const answer = await api.call(method, path, body);
      expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '5']);
    }
    api.readiness.checks = { migrations: 'ok' };
    expect((await api.call('GET', '/api/v1/schedules')).status).toBe(200);
  });
});

test('an error of ours is 500, logged, and reveals nothing', async () => {
  await api.sql`ALTER TABLE instances RENAME TO hidden`;
  const answer = await api.call('GET', '/api/v1/instances');
  await api.sql`ALTER TABLE hidden RENAME TO instances`;
  expect(answer.status).toBe(500);
  expect(answer.text).not.toMatch(/instances|SELECT|relation|\.ts/);
  expect(JSON.stringify(api.warnings)).toContain('relation');
});

describe('the OpenAPI document', () => {
  test('is the one of the clients and of the reference, served', async () => {
    const served = await api.call('GET', '/openapi.json');
    const written = JSON.parse(await readFile('openapi/openapi.json', 'utf8')) as {
      info: { version: string };
    };
    written.info.version = '0.0.0-test';
    expect(served.body).toEqual(written);
    expect(served.body).toMatchObject({ openapi: '3.1.0', info: { title: 'firelock' } });
  });

  test('is written once: plain or compressed, it has a tag, and is not sent to a caller that has it', async () => {
    const first = await api.call('GET', '/openapi.json');
    const written = vi.spyOn(JSON, 'stringify');
    const other = await api.call('GET', '/docs/json');
    const times = written.mock.calls.filter(([value]) => (value as { paths?: unknown }).paths !== undefined);
    written.mockRestore();
    expect(times).toEqual([]);
    expect(other.text).toBe(first.text);
    expect(first.headers.get('content-encoding')).toBe('gzip');
    const plain = await api.call('GET', '/openapi.json', undefined, { 'accept-encoding': 'identity' });
    expect([plain.text, plain.headers.get('content-encoding')]).toEqual([first.text, null]);
    const etag = first.headers.get('etag') ?? '';
    const again = await api.call('GET', '/openapi.json', undefined, { 'if-none-match': etag });
    expect([etag.length, again.status, again.text]).toEqual([24, 304, '']);
  });

  test('describes every call completely: id, summary, tags, answers, and references that resolve', async () => {
    const { text, body } = await api.call('GET', '/openapi.json');
    const ids = new Set<string>();
    for (const [path, methods] of Object.entries(body['paths'] ?? {})) {
      for (const [method, call] of Object.entries(methods)) {
        const { operationId, summary, tags, responses } = call as unknown as Record<string, object> & {
          operationId: string;
        };
        expect([path, method, typeof operationId, typeof summary, Array.isArray(tags)]).toEqual([
          path,
          method,
          'string',
          'string',
          true,
        ]);
        expect(ids.has(operationId)).toBe(false);
        ids.add(operationId);
        if (path.startsWith('/api/'))
          expect(Object.keys(responses ?? {})).toEqual(expect.arrayContaining(['500', '503']));
      }
    }
    const schemas = (body['components']?.['schemas'] ?? {}) as object;
    for (const [, name] of text.matchAll(/#\/components\/schemas\/([^"]+)"/g))
      expect(Object.keys(schemas)).toContain(name);
  });
});

describe('the headers of security', () => {
  const token = newToken('someone', 'viewer');
  const api = sharedApi({ apiTokens: [token.known] });

  const ALWAYS = {
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
    'referrer-policy': 'no-referrer',
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
  };
  const PLAIN = {
    ...ALWAYS,
    'cache-control': 'no-store',
    'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  };

  function among(names: object, { headers }: Pick<Answer, 'headers'>): object {
    return Object.fromEntries(Object.keys(names).map((name) => [name, headers.get(name)]));
  }

  test.each([
    ['GET', '/api/v1/schedules', 200, token.headers],
    ['GET', '/api/v1/schedules/none', 404, token.headers],
    ['PUT', '/api/v1/schedules/mine', 403, token.headers],
    ['GET', '/api/v1/schedules', 401, {}],
    ['POST', '/api/v1/instances', 405, token.headers],
    ['GET', '/nothing', 404, {}],
    ['GET', '/healthz', 200, {}],
    ['GET', '/readyz', 200, {}],
    ['GET', '/metrics', 200, {}],
    ['GET', '/openapi.json', 200, {}],
  ] as const)('%s %s, answered %i, tells a browser to do nothing with it', async (method, path, status, headers) => {
    const body = method === 'PUT' ? SCHEDULE : undefined;
    const answer = await api.call(method, path, body, headers);
    expect(answer.status).toBe(status);
    expect(among(PLAIN, answer)).toEqual(PLAIN);
    for (const name of ['server', 'x-powered-by', 'via']) expect(answer.headers.get(name)).toBeNull();
  });

  test('answers to requests that no route could take have the headers too', async () => {
    for (const bytes of ['nonsense\r\n\r\n', 'GET /%zz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n']) {
      const answer = (await api.raw(bytes)).toLowerCase();
      for (const [name, value] of Object.entries(PLAIN)) expect(answer).toContain(`${name}: ${value}`.toLowerCase());
      expect(answer).not.toMatch(/\r\nserver:|node_modules|\.ts:/);
    }
  });

  test('the pages of the documentation load all they need from here, and nothing from elsewhere', async () => {
    const page = await api.call('GET', '/docs/');
    expect(among(ALWAYS, page)).toEqual(ALWAYS);
    const policy = page.headers.get('content-security-policy') ?? '';
    expect(policy).toMatch(/^default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;/);
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toMatch(/unsafe|https?:/);
    // Nothing stands in the page itself that the policy would keep from working.
    expect(page.text).not.toMatch(/<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=/i);
    // It wears our name and our icon.
    expect(page.text).toContain('<title>firelock: the API</title>');
    expect(page.text).not.toMatch(/Swagger UI<\/title>|(?:src|href)="https?:/);
    const [, icon = ''] = /rel="icon"[^>]*href="([^"]+)"/.exec(page.text) ?? [];
    const drawn = await api.call('GET', new URL(icon, `${api.url}/docs/`).pathname);
    expect([drawn.status, drawn.text]).toEqual([200, expect.stringContaining('#d9480f')]);
    expect(await readFile('web/src/icon.svg', 'utf8')).toContain(/d="[^"]+"/.exec(drawn.text)?.[0]);
    const loaded = [...page.text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path = '']) => path);
    expect(loaded.length).toBeGreaterThan(4);
    for (const path of loaded) {
      const answer = await api.call('GET', new URL(path, `${api.url}/docs/`).pathname);
      expect([path, answer.status]).toEqual([path, 200]);
      expect(among(ALWAYS, answer)).toEqual(ALWAYS);
      expect(answer.headers.get('content-type')).toMatch(
        /^(text\/css|application\/javascript|text\/javascript|image\/(png|svg\+xml))/,
      );
    }
  });
});

describe('below a base path', () => {
  const api = sharedApi({ basePath: '/ops/cron' });

  it('everything answers below the base path, and nothing elsewhere', async () => {
    for (const path of ['/healthz', '/readyz', '/metrics', '/openapi.json', '/docs/', '/api/v1/schedules']) {
      expect([path, (await api.call('GET', `/ops/cron${path}`)).status]).toEqual([path, 200]);
      const elsewhere = await api.call('GET', path);
      expect([path, elsewhere.status]).toEqual([path, 404]);
      expect(elsewhere.headers.get('content-type')).toMatch(/^application\/problem\+json/);
    }
    for (const path of ['/', '/ops', '/ops/cron', '/ops/cron/nope', '/ops/cronapi/v1/schedules', '/OPS/cron/healthz'])
      expect([path, (await api.call('GET', path)).status]).toEqual([path, 404]);
    expect((await api.call('DELETE', '/ops/cron/api/v1/runs')).status).toBe(405);
  });

  it('below it callers need a token, and elsewhere they do not', async () => {
    const { known, headers } = newToken('ci', 'viewer');
    const url = 'postgres://nobody:nothing@127.0.0.1:9/none';
    const guarded = await startApi(url, { basePath: '/cron', apiTokens: [known] });
    onTestFinished(() => guarded.stop());
    for (const path of ['/cron/api/v1', '/cron/api/v1/me', '/cron/api/v1/nope']) {
      expectUnauthorized(await guarded.call('GET', path));
      const { status } = await guarded.call('GET', path, undefined, headers);
      expect([path, status]).toEqual([path, path.endsWith('/me') ? 200 : 404]);
    }
    expect((await guarded.call('GET', '/cron/healthz')).status).toBe(200);
    expect((await guarded.call('GET', '/api/v1/me')).status).toBe(404);
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
    for (const bad of ['cron', '/', '/cron/', '//cron', '/a b', '/a%20b', '/:id', '/*', '/a?b', '/..', '/a/../b', '/é'])
      expect([bad, faultsOf(bad)]).toEqual([
        bad,
        [expect.stringMatching(/^FIRELOCK_BASE_PATH is ".*"; expected: what stands before every path, such as \/cron/)],
      ]);
  });
});
