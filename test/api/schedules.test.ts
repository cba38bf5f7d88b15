import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Api, SCHEDULE, TARGET, faultPaths, startApi } from './api.ts';

let api: Api;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.stop());

describe('PUT', () => {
  test('creates with every default, says where, and answers what GET answers', async () => {
    const created = await api.call('PUT', '/api/v1/schedules/fresh', SCHEDULE);
    expect(created.status).toBe(201);
    expect(created.headers.get('location')).toBe('/api/v1/schedules/fresh');
    expect(created.headers.get('etag')).toBe('"1"');
    expect(created.body).toEqual({
      id: 'fresh',
      description: null,
      cron: '0 12 29 2 *',
      everySeconds: null,
      at: null,
      after: null,
      timezone: null,
      enabled: true,
      pauseReason: null,
      startAt: null,
      endAt: null,
      target: { ...TARGET, method: 'POST', headers: {} },
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

  test('takes back what GET answered, edited or not', async () => {
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

  test('replaces whole: what is not sent is back at its default', async () => {
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
      [
        'id',
        'x',
        'If-Match',
        '/id',
        '/cron',
        '/timezone',
        '/enabled',
        '/colour',
        '/a~1b~0c',
        '/target/url',
        '/target/method',
        '/target/headers/Host',
        '/target/headers/X-B',
        '/target/verb',
        '/retry/maxAttempts',
        '/retry/minBackoffSeconds',
        '/timeoutSeconds',
        '/priority',
        '/labels/',
        '/labels/a',
        '/description',
      ].sort(),
    );
  });

  test.each(['If-Match', 'If-None-Match'])('refuses a malformed %s', async (name) => {
    const answer = await api.call('PUT', '/api/v1/schedules/tags', SCHEDULE, { [name]: '3' });
    expect(answer.status).toBe(400);
    expect(faultPaths(answer)).toEqual([name]);
  });
});
