import { readFile } from 'node:fs/promises';
import { describe, expect, test, vi } from 'vitest';
import { SCHEDULE, sharedApi, startApi } from './api.ts';

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

test.each([
  ['POST', '/api/v1/schedules', 'GET, HEAD'],
  ['POST', '/api/v1/schedules/a', 'DELETE, GET, HEAD, PATCH, PUT'],
  ['POST', '/api/v1/schedules/a/upcoming?x=1', 'GET, HEAD'],
  ['GET', '/api/v1/schedules/a/fire', 'POST'],
  ['DELETE', '/api/v1/runs', 'GET, HEAD, POST'],
  ['POST', '/api/v1/runs/1', 'GET, HEAD'],
  ['OPTIONS', '/api/v1/instances', 'GET, HEAD'],
  ['PATCH', '/healthz', 'GET, HEAD'],
  ['PROPFIND', '/readyz', 'GET, HEAD'],
])('%s %s is 405 and says what is allowed', async (method, path, allow) => {
  const answer = await api.call(method, path);
  expect([answer.status, answer.headers.get('allow')]).toEqual([405, allow]);
  expect(answer.body['status']).toBe(405);
});

test('HEAD answers as GET does, without the body', async () => {
  await api.call('PUT', '/api/v1/schedules/head', SCHEDULE);
  for (const path of [
    '/api/v1/schedules/head',
    '/api/v1/schedules?limit=1',
    '/api/v1/runs',
    '/healthz',
    '/readyz',
  ]) {
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
    ['GET', '/api/v1/schedules/a', undefined],
    ['PUT', '/api/v1/schedules/a', SCHEDULE],
    ['PATCH', '/api/v1/schedules/a', {}],
    ['DELETE', '/api/v1/schedules/a', undefined],
    ['POST', '/api/v1/schedules/batch', { items: [{ id: 'a', ...SCHEDULE }] }],
    ['GET', '/api/v1/schedules/a/runs', undefined],
    ['GET', '/api/v1/schedules/a/upcoming', undefined],
    ['POST', '/api/v1/schedules/a/fire', undefined],
    ['POST', '/api/v1/preview', { cron: '* * * * *' }],
    ['GET', '/api/v1/runs', undefined],
    ['GET', '/api/v1/runs/019b76da-a800-7000-8000-000000000000', undefined],
    ['POST', '/api/v1/runs', { target: SCHEDULE.target }],
    ['POST', '/api/v1/runs/batch', { items: [{ ref: 'a', target: SCHEDULE.target }] }],
    ['POST', '/api/v1/runs/019b76da-a800-7000-8000-000000000000/cancel', undefined],
    ['POST', '/api/v1/runs/019b76da-a800-7000-8000-000000000000/retry', undefined],
    ['POST', '/api/v1/runs/019b76da-a800-7000-8000-000000000000/complete', { status: 'failed' }],
    ['POST', '/api/v1/runs/019b76da-a800-7000-8000-000000000000/heartbeat', undefined],
    ['POST', '/api/v1/runs/019b76da-a800-7000-8000-000000000000/release', undefined],
    ['GET', '/api/v1/instances', undefined],
  ] as const;

  test('every call is 503 with Retry-After, and the process is alive', async () => {
    const lost = await startApi('postgres://nobody:nothing@127.0.0.1:9/none');
    for (const [method, path, body] of calls) {
      const answer = await lost.call(method, path, body);
      expect([method, path, answer.status, answer.headers.get('retry-after')]).toEqual([
        method,
        path,
        503,
        '5',
      ]);
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

  test('is shown at /docs, from here alone', async () => {
    const page = await api.call('GET', '/docs/');
    expect([page.status, page.headers.get('content-type')]).toEqual([
      200,
      expect.stringContaining('text/html'),
    ]);
    expect(page.text).not.toMatch(/(src|href)="https?:/);
    const script = /src="([^"]*swagger-ui-bundle\.js)"/.exec(page.text)?.[1] ?? '';
    expect((await api.call('GET', new URL(script, `${api.url}/docs/`).href)).status).toBe(200);
  });
});
