import { describe, expect, test } from 'vitest';
import { SCHEDULE, TARGET, faultPaths, sharedApi } from '../api.ts';
import { targetAt } from '../../support/targets.ts';

const api = sharedApi();

describe('PUT', () => {
  test('creates with every default, answers the place, and answers the same as GET', async () => {
    const created = await api.call('PUT', '/api/v1/schedules/fresh', SCHEDULE);
    expect(created.status).toBe(201);
    expect(created.headers.get('location')).toBe('/api/v1/schedules/fresh');
    expect(created.headers.get('etag')).toBe('"1"');
    expect(created.body).toEqual({
      id: 'fresh',
      description: null,
      cron: '0 12 29 2 *',
      everySeconds: null,
      exclude: null,
      observe: null,
      pingKey: null,
      onExcluded: 'skip',
      every: null,
      pick: null,
      at: null,
      after: null,
      timezone: null,
      enabled: true,
      pauseReason: null,
      pauseUntil: null,
      pauseAfterFailures: null,
      successWithinSeconds: null,
      expect: null,
      late: false,
      startAt: null,
      endAt: null,
      target: targetAt(TARGET.url),
      payload: null,
      catchUp: 'latest',
      catchUpLimit: 100,
      graceSeconds: 60,
      overlap: 'allow',
      jitterSeconds: 0,
      retry: { maxAttempts: 5, minBackoffSeconds: 10, maxBackoffSeconds: 3600 },
      timeoutSeconds: 30,
      completion: 'response',
      completionTimeoutSeconds: 3600,
      delivery: 'atLeastOnce',
      priority: 'normal',
      labels: {},
      limit: null,
      expiresAfterSeconds: null,
      status: 'active',
      error: null,
      nextFireAt: expect.stringMatching(/^20\d\d-02-29T12:00:00.000Z$/) as string,
      lastFireAt: null,
      lockedBy: null,
      lockedAt: null,
      version: 1,
      createdAt: expect.stringMatching(/Z$/) as string,
      updatedAt: expect.stringMatching(/Z$/) as string,
    });
    const read = await api.call('GET', '/api/v1/schedules/fresh');
    expect(read.status).toBe(200);
    expect(read.text).toBe(created.text);
    expect(read.headers.get('etag')).toBe('"1"');
  });

  test('accepts the answer of GET, edited or not', async () => {
    await api.call('PUT', '/api/v1/schedules/echo', {
      ...SCHEDULE,
      timezone: 'Europe/Berlin',
      labels: { team: 'billing' },
      payload: [1, 2],
      target: { ...TARGET, headers: { Authorization: 'Bearer x' } },
    });
    const read = await api.call('GET', '/api/v1/schedules/echo');
    const same = await api.call('PUT', '/api/v1/schedules/echo', read.text);
    expect([same.status, same.headers.get('etag'), same.text]).toEqual([200, '"1"', read.text]);

    const edited = await api.call('PUT', '/api/v1/schedules/echo', { ...read.body, description: 'edited' });
    expect([edited.status, edited.headers.get('etag')]).toEqual([200, '"2"']);
    expect(edited.body['description']).toBe('edited');
    expect(edited.body['createdAt']).toBe(read.body['createdAt']);
  });

  test('replaces the whole: an omitted field gets its default', async () => {
    const full = {
      ...SCHEDULE,
      description: 'x',
      enabled: false,
      priority: 'high',
      payload: { a: 1 },
      timeoutSeconds: 2.5,
    };
    const { body } = await api.call('PUT', '/api/v1/schedules/whole', full);
    expect(body).toMatchObject({ status: 'paused', nextFireAt: null, timeoutSeconds: 2.5, priority: 'high' });
    const replaced = await api.call('PUT', '/api/v1/schedules/whole', SCHEDULE);
    expect(replaced.body).toMatchObject({
      status: 'active',
      description: null,
      priority: 'normal',
      payload: null,
      timeoutSeconds: 30,
      version: 2,
    });
  });

  test('names every fault of path, body and headers in one answer', async () => {
    const answer = await api.call(
      'PUT',
      '/api/v1/schedules/-bad?x=1',
      {
        id: 'other',
        cron: '99 * * * *',
        timezone: 'Mars/Olympus',
        enabled: 'yes',
        colour: 'red',
        'a/b~c': 1,
        target: {
          type: 'http',
          url: 'ftp://x',
          method: 'FETCH',
          headers: { Host: 'x', 'X-B': '{{nope}}' },
          verb: 1,
        },
        retry: { maxAttempts: 0, minBackoffSeconds: 'x' },
        timeoutSeconds: 0,
        priority: 'urgent',
        labels: { '': 'x', a: 1 },
        description: 'a\u0000b',
      },
      { 'if-match': 'three' },
    );
    expect(answer.status).toBe(400);
    expect(answer.headers.get('content-type')).toMatch(/^application\/problem\+json/);
    expect(answer.body).toMatchObject({ type: 'about:blank', title: 'Bad Request', status: 400 });
    expect(faultPaths(answer)).toEqual(
      (
        'id x If-Match /id /cron /timezone /enabled /colour /a~1b~0c /target/url /target/method ' +
        '/target/headers/Host /target/headers/X-B /target/verb /retry/maxAttempts ' +
        '/retry/minBackoffSeconds /timeoutSeconds /priority /labels/ /labels/a /description'
      )
        .split(' ')
        .sort(),
    );
  });

  test.each(['If-Match', 'If-None-Match'])('refuses a malformed %s', async (name) => {
    const answer = await api.call('PUT', '/api/v1/schedules/tags', SCHEDULE, { [name]: '3' });
    expect(answer.status).toBe(400);
    expect(faultPaths(answer)).toEqual([name]);
  });
});

describe('PUT under conditions', () => {
  test('If-None-Match: * creates and never replaces', async () => {
    const once = { 'if-none-match': '*' };
    expect((await api.call('PUT', '/api/v1/schedules/only-new', SCHEDULE, once)).status).toBe(201);
    const again = await api.call('PUT', '/api/v1/schedules/only-new', { ...SCHEDULE, cron: '1 1 1 1 *' }, once);
    expect(again.status).toBe(412);
    expect((await api.call('GET', '/api/v1/schedules/only-new')).body['version']).toBe(1);
  });

  test.each([
    ['"1"', 200],
    ['*', 200],
    ['"7", "1"', 200],
    ['"7"', 412],
    ['W/"1"', 412],
  ])('If-Match: %s on version 1 gives %d', async (match, status) => {
    await api.call('DELETE', '/api/v1/schedules/matched');
    await api.call('PUT', '/api/v1/schedules/matched', SCHEDULE);
    for (const [method, body] of [
      ['PUT', SCHEDULE],
      ['PATCH', {}],
    ] as const) {
      const answer = await api.call(method, '/api/v1/schedules/matched', body, { 'if-match': match });
      expect(answer.status).toBe(status);
    }
    const deleted = await api.call('DELETE', '/api/v1/schedules/matched', undefined, { 'if-match': match });
    expect(deleted.status).toBe(status === 200 ? 204 : status);
  });

  test('If-Match on an unknown id is 404, whatever its value, and creates nothing', async () => {
    for (const match of ['*', '"1"']) {
      for (const [method, body] of [
        ['PUT', SCHEDULE],
        ['PATCH', {}],
        ['DELETE', undefined],
      ] as const) {
        const answer = await api.call(method, '/api/v1/schedules/nobody', body, { 'if-match': match });
        expect(answer.status).toBe(404);
      }
    }
    expect((await api.call('GET', '/api/v1/schedules/nobody')).status).toBe(404);
  });

  test('of ten writers with the same version, one succeeds', async () => {
    await api.call('PUT', '/api/v1/schedules/race', SCHEDULE);
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, n) =>
        api.call('PATCH', '/api/v1/schedules/race', { description: `${n}` }, { 'if-match': '"1"' }),
      ),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array<number>(9).fill(412)]);
  });

  test('of ten creators of one id, one gets 201', async () => {
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => api.call('PUT', '/api/v1/schedules/born-once', SCHEDULE)),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([...Array<number>(9).fill(200), 201]);
  });
});

describe('cron and timezone', () => {
  test.each(['', '60 * * * *', 'x'.repeat(300)])('refuses the expression %j', async (cron) => {
    const answer = await api.call('PUT', '/api/v1/schedules/c', { ...SCHEDULE, cron });
    expect(answer.status).toBe(400);
    expect(faultPaths(answer)).toEqual(['/cron']);
  });

  test.each(['', '+02:00', 'local', 'Europe/Atlantis', 'UTC+1'])('refuses the zone %j', async (timezone) => {
    const answer = await api.call('PUT', '/api/v1/schedules/c', { ...SCHEDULE, timezone });
    expect(answer.status).toBe(400);
    expect(faultPaths(answer)).toEqual(['/timezone']);
  });
});

describe('target', () => {
  test.each([
    'example.com',
    'ftp://example.com',
    'https://',
    'https://user:pw@example.com/',
    'https://@example.com/',
    'https://{{runId}}.example.com/',
    'https://example.com:{{attempt}}/',
    'https://example.com/{{unknown}}',
    'https://example.com/a b',
    'https://example.com/\n',
    'http:\\\\example.com\\',
    'https://exa\u0000mple.com/',
    'https://example.com:99999/',
    `https://example.com/${'x'.repeat(2048)}`,
    'https://example.com/{{',
    'javascript:alert(1)',
    'file:///etc/passwd',
  ])('refuses the URL %j', async (url) => {
    const answer = await api.call('PUT', '/api/v1/schedules/u', {
      ...SCHEDULE,
      target: { type: 'http', url },
    });
    expect(answer.status).toBe(400);
    expect(faultPaths(answer)).toEqual(['/target/url']);
  });

  test.each([
    'http://127.0.0.1:8080',
    'https://example.com/{{scheduleId}}/{{runName}}?at={{scheduledFor}}&n={{attempt}}#x',
    'http://[::1]:9000/hook',
    'https://m\u00fcnchen.example/{',
  ])('takes the URL %j', async (url) => {
    const answer = await api.call('PUT', '/api/v1/schedules/u', {
      ...SCHEDULE,
      target: { type: 'http', url },
    });
    expect([answer.status, (answer.body['target'] as { url?: unknown }).url]).toEqual([expect.any(Number), url]);
    expect(answer.status).toBeLessThan(300);
  });

  test('refuses each bad header by its name', async () => {
    const headers = {
      ...{ 'webhook-id': 'x', 'Content-Length': '1', 'a b': 'x', 'X-Ctl': 'a\nb', 'X-Euro': '\u20ac' },
      ...{ 'X-Tpl': '{{nope}}', 'X-Twice': '1', 'x-twice': '2', 'X-Fine': '{{runId}}' },
    };
    const target = { ...TARGET, headers };
    const answer = await api.call('PUT', '/api/v1/schedules/h', { ...SCHEDULE, target });
    const bad = ['Content-Length', 'X-Ctl', 'X-Euro', 'X-Tpl', 'a b', 'webhook-id', 'x-twice'];
    expect([answer.status, faultPaths(answer)]).toEqual([400, bad.map((name) => `/target/headers/${name}`)]);
  });

  test('takes 64 headers and no more', async () => {
    const headers = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`x-${n}`, `${n}`]));
    const put = (count: number) =>
      api.call('PUT', '/api/v1/schedules/h', { ...SCHEDULE, target: { ...TARGET, headers: headers(count) } });
    expect((await put(64)).status).toBe(201);
    expect((await put(65)).status).toBe(400);
  });
});

describe('PATCH', () => {
  const put = (id: string, body: object = SCHEDULE) => api.call('PUT', `/api/v1/schedules/${id}`, body);
  const patch = (id: string, body: unknown, headers?: Record<string, string>) =>
    api.call('PATCH', `/api/v1/schedules/${id}`, body, headers);

  test('changes the fields that it names and nothing else', async () => {
    await put('patched', {
      ...SCHEDULE,
      description: 'd',
      labels: { a: '1', b: '2' },
      timezone: 'Asia/Tokyo',
    });
    const answer = await patch(
      'patched',
      { cron: '0 13 29 2 *', labels: { a: null, c: '3' }, retry: { maxAttempts: 1 } },
      { 'content-type': 'application/merge-patch+json' },
    );
    expect([answer.status, answer.headers.get('etag')]).toEqual([200, '"2"']);
    expect(answer.body).toMatchObject({ cron: '0 13 29 2 *', description: 'd', timezone: 'Asia/Tokyo' });
    expect(answer.body['labels']).toEqual({ b: '2', c: '3' });
    expect(answer.body['retry']).toEqual({ maxAttempts: 1, minBackoffSeconds: 10, maxBackoffSeconds: 3600 });
  });

  test('null resets a field to its default', async () => {
    const given = {
      ...{ description: 'd', timezone: 'Asia/Tokyo', enabled: false, pauseReason: 'p', payload: 1 },
      ...{
        retry: { maxAttempts: 9 },
        timeoutSeconds: 9,
        completion: 'callback',
        completionTimeoutSeconds: 9,
      },
      ...{ priority: 'low', labels: { a: '1' }, catchUp: 'all', catchUpLimit: 7, graceSeconds: 1 },
      ...{
        overlap: 'queue',
        jitterSeconds: 9,
        startAt: '2020-01-01T00:00:00Z',
        endAt: '2099-01-01T00:00:00Z',
      },
    };
    await put('reset', { ...SCHEDULE, ...given, target: { ...TARGET, method: 'GET', headers: { A: 'b' } } });
    const nulls = Object.fromEntries(Object.keys(given).map((field) => [field, null]));
    const reset = await patch('reset', { ...nulls, target: { method: null, headers: null } });
    expect(reset.status).toBe(200);
    const fresh = (await put('reset-fresh')).body;
    for (const field of [...Object.keys(given), 'target'])
      expect([field, reset.body[field]]).toEqual([field, fresh[field]]);
  });

  test('cannot remove what a schedule needs', async () => {
    await put('needs');
    const answer = await patch('needs', { target: { url: null, type: null } });
    expect([answer.status, faultPaths(answer)]).toEqual([400, ['/target/type', '/target/url']]);
    expect((await patch('needs', { target: null })).status).toBe(400);
  });

  test('that changes nothing keeps the version', async () => {
    await put('same', { ...SCHEDULE, payload: { a: 1 } });
    for (const body of [
      {},
      { cron: SCHEDULE.cron },
      { payload: { a: 1 } },
      { labels: {} },
      { version: 77, status: 'x' },
    ]) {
      expect((await patch('same', body)).body['version']).toBe(1);
    }
  });

  test('names every fault at once, and unknown ids with 404', async () => {
    await put('faulty');
    const answer = await patch('faulty', {
      id: 'x',
      cron: 'x',
      nope: 1,
      retry: { nope: 1, maxAttempts: 'x' },
      target: { url: 'x' },
      labels: { a: 5 },
    });
    expect([answer.status, faultPaths(answer)]).toEqual([
      400,
      ['/cron', '/id', '/labels/a', '/nope', '/retry/maxAttempts', '/retry/nope', '/target/url'],
    ]);
    expect((await patch('no-such', {})).status).toBe(404);
  });

  test('takes a first wait beyond the cap, which is then every wait', async () => {
    await put('backoff', { ...SCHEDULE, retry: { maxBackoffSeconds: 60 } });
    const answer = await patch('backoff', { retry: { minBackoffSeconds: 61 } });
    expect(answer.status).toBe(200);
    expect(answer.body['retry']).toEqual({ maxAttempts: 5, minBackoffSeconds: 61, maxBackoffSeconds: 60 });
  });
});

describe('DELETE', () => {
  test('answers 204 once, 404 afterwards; the id is free again', async () => {
    await api.call('PUT', '/api/v1/schedules/gone', SCHEDULE);
    const deleted = await api.call('DELETE', '/api/v1/schedules/gone');
    expect([deleted.status, deleted.text]).toEqual([204, '']);
    expect((await api.call('DELETE', '/api/v1/schedules/gone')).status).toBe(404);
    expect((await api.call('GET', '/api/v1/schedules/gone')).status).toBe(404);
    const again = await api.call('PUT', '/api/v1/schedules/gone', SCHEDULE);
    expect([again.status, again.body['version']]).toEqual([201, 1]);
  });

  test('takes no body', async () => {
    await api.call('PUT', '/api/v1/schedules/bodied', SCHEDULE);
    expect((await api.call('DELETE', '/api/v1/schedules/bodied', { force: true })).status).toBe(400);
    expect((await api.call('DELETE', '/api/v1/schedules/bodied', '')).status).toBe(204);
  });
});

describe('a label', () => {
  const at = (id: string) => `/api/v1/schedules/${id}`;

  test('a label whose key has a colon is refused wherever it is sent, since no filter could name it', async () => {
    const labels = { 'k8s:app': 'x', fine: 'a:b' };
    const put = await api.call('PUT', at('colon'), { ...SCHEDULE, labels });
    expect([put.status, faultPaths(put)]).toEqual([400, ['/labels/k8s:app']]);
    await api.call('PUT', at('colon'), SCHEDULE);
    const patched = await api.call('PATCH', at('colon'), { labels });
    expect([patched.status, faultPaths(patched)]).toEqual([400, ['/labels/k8s:app']]);
    const batch = await api.call('POST', '/api/v1/schedules/batch', {
      items: [{ ...SCHEDULE, id: 'x', labels }],
    });
    expect([batch.status, faultPaths(batch)]).toEqual([400, ['/items/0/labels/k8s:app']]);
  });

  test('one that was stored before can be read, outlives other edits, and can be taken away', async () => {
    await api.call('PUT', at('stored'), { ...SCHEDULE, labels: { team: 'a' } });
    await api.sql`UPDATE schedule_versions SET definition = jsonb_set(definition, '{labels,k8s:app}', '"x"')
    WHERE schedule_id = 'stored'`;
    expect((await api.call('GET', at('stored'))).body['labels']).toEqual({ team: 'a', 'k8s:app': 'x' });
    const edited = await api.call('PATCH', at('stored'), { labels: { team: 'b' } });
    expect(edited.body['labels']).toEqual({ team: 'b', 'k8s:app': 'x' });
    const taken = await api.call('PATCH', at('stored'), { labels: { 'k8s:app': null } });
    expect([taken.status, taken.body['labels']]).toEqual([200, { team: 'b' }]);
  });

  test('a search ignores the case of letters beyond ASCII', async () => {
    await api.call('PUT', at('umlaut'), { ...SCHEDULE, description: 'Monatliche PRÜFUNG' });
    const { body } = await api.call('GET', `/api/v1/schedules?q=${encodeURIComponent('prüf')}`);
    expect((body['items'] as unknown as { id: string }[]).map(({ id }) => id)).toEqual(['umlaut']);
  });
});
