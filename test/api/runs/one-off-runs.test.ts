import { describe, expect, test } from 'vitest';
import { opened } from '../../support/secrets.ts';
import { scheduledForOf } from '../../../src/core/runs/run.ts';
import { changeRun } from '../../support/run-rows.ts';
import { ANSWERED_TARGET, SCHEDULE, TARGET, faultPaths, quietApi, errorsOf, itemsOf, idsOf } from '../api.ts';

const api = quietApi();

const post = (body: unknown) => api.call('POST', '/api/v1/runs', body);
const get = (id: string) => api.call('GET', `/api/v1/runs/${id}`);
const textOf = (value: unknown) => value as string;

async function created(body: object): Promise<string> {
  const answer = await post(body);
  expect([answer.status, answer.text]).toEqual([201, expect.any(String)]);
  return textOf(answer.body['id']);
}

/** As settling leaves it. */
const end = (id: string, status: string) => changeRun(api.sql, id, { status });

/** Whether it is claimed as it stands, or has to come due first. */
async function isReady(id: string): Promise<boolean | undefined> {
  const [row] = await api.sql<{ ready: boolean }[]>`SELECT ready FROM runs WHERE id = ${id}`;
  return row?.ready;
}

async function count(): Promise<number> {
  const [row] = await api.sql<{ count: number }[]>`SELECT (SELECT count(*) FROM all_runs)::int
    + (SELECT count(*) FROM run_keys)::int + (SELECT count(*) FROM run_dependencies)::int
    + (SELECT count(*) FROM schedule_versions)::int AS count`;
  return row?.count ?? -1;
}

describe('a one-off run', () => {
  test('is answered with 201 and its place, and belongs to no schedule', async () => {
    api.justWoken();
    const answer = await post({ target: TARGET, payload: { invoice: 4711 }, key: 'first' });
    const { body } = answer;
    expect(answer.status).toBe(201);
    expect(answer.headers.get('location')).toBe(`/api/v1/runs/${textOf(body['id'])}`);
    expect(body).toMatchObject({
      name: null,
      scheduleId: null,
      scheduleVersion: null,
      trigger: 'api',
      status: 'pending',
      reason: null,
      attempts: 0,
      failures: 0,
      finishedAt: null,
      result: null,
      error: null,
      key: 'first',
      payload: { invoice: 4711 },
      priority: 'normal',
      dependsOn: [],
      dependents: [],
      parentRunId: null,
      notifierId: null,
      queue: null,
      workerId: null,
      leaseUntil: null,
      completionDueAt: null,
      progress: null,
    });
    expect(body['nextAttemptAt']).toBe(body['scheduledFor']);
    expect(scheduledForOf(textOf(body['id']))).toBe(Date.parse(textOf(body['scheduledFor'])));
    expect((await get(textOf(body['id']))).body).toEqual({
      ...body,
      target: ANSWERED_TARGET,
      attemptLog: [],
    });
    expect(api.justWoken()).toEqual({ effects: 0, dispatch: 1, workers: 0, admission: 0, alerts: 0 });
  });

  test('uses its own fields, and the defaults of schedules', async () => {
    const said = {
      target: { ...TARGET, method: 'PUT', headers: { A: 'hidden' } },
      retry: { maxAttempts: 2 },
      timeoutSeconds: 7,
      completion: 'callback',
      completionTimeoutSeconds: 90,
      delivery: 'atMostOnce',
    };
    const id = await created({ ...said, priority: 'high' });
    const plain = await created({ target: TARGET });
    const definitionOf = async (runId: string) => {
      const [row] = await api.sql<{ uid: string; definition: Record<string, unknown> }[]>`
        SELECT schedule_uid AS uid, definition FROM schedule_versions v JOIN all_runs r USING (schedule_uid)
        WHERE r.id = ${runId}`;
      return row && { ...row.definition, target: opened(row.uid, row.definition['target']) };
    };
    expect(await definitionOf(id)).toMatchObject({
      ...said,
      retry: { maxAttempts: 2, minBackoffSeconds: 10, maxBackoffSeconds: 3600 },
    });
    expect(await definitionOf(plain)).toMatchObject({
      retry: { maxAttempts: 5, minBackoffSeconds: 10, maxBackoffSeconds: 3600 },
      timeoutSeconds: 30,
      completion: 'response',
      completionTimeoutSeconds: 3600,
      delivery: 'atLeastOnce',
    });
    const answer = await get(id);
    expect(answer.body['priority']).toBe('high');
    expect(answer.text).not.toContain('hidden');
  });

  test('of a queue names it, and wakes the workers that wait there', async () => {
    api.justWoken();
    const id = await created({ target: { type: 'pull', queue: 'reports' } });
    expect((await get(id)).body).toMatchObject({ queue: 'reports', status: 'pending', workerId: null });
    expect(api.justWoken()).toMatchObject({ effects: 0, workers: 1 });
  });

  test('keeps its payload byte for byte', async () => {
    const text = '{"a" :\t1.0,\r\n "a": 12345678901234567890.10}';
    const answer = await post(`{"target": ${JSON.stringify(TARGET)}, "payload": ${text} }`);
    expect(answer.text).toContain(`"payload":${text},`);
    expect((await get(textOf(answer.body['id']))).text).toContain(`"payload":${text},`);
    expect((await post({ target: TARGET, payload: null })).body['payload']).toBeNull();
  });

  test.each([
    ['2030-01-02T03:04:05.678Z', '2030-01-02T03:04:05.678Z'],
    ['2030-01-02T03:04:05.6789+02:00', '2030-01-02T01:04:05.678Z'],
    ['2030-01-02T03:04-0130', '2030-01-02T04:34:00.000Z'],
    ['2100-01-01T00:00:00Z', '2100-01-01T00:00:00.000Z'],
  ])('with runAt %s is due then', async (runAt, at) => {
    const { body } = await post({ target: TARGET, runAt });
    expect(body).toMatchObject({ status: 'pending', scheduledFor: at, nextAttemptAt: at });
    expect(scheduledForOf(textOf(body['id']))).toBe(Date.parse(at));
    expect(await isReady(textOf(body['id']))).toBe(false);
  });

  test('with a runAt that has passed is due at once, however long ago that is', async () => {
    const yesterday = new Date(Date.now() - 86_400_000).toISOString();
    for (const runAt of [yesterday, '2020-01-01T00:00:00.000Z', '2000-01-01T00:00:00.000Z']) {
      const body = { target: TARGET, runAt, key: `of ${runAt}` };
      api.justWoken();
      const id = await created(body);
      expect(api.justWoken()).toMatchObject({ dispatch: 1 });
      expect((await get(id)).body).toMatchObject({
        status: 'pending',
        scheduledFor: runAt,
        nextAttemptAt: runAt,
      });
      expect(await isReady(id)).toBe(true);
      const again = await post(body);
      expect([again.status, again.body['id']]).toEqual([200, id]);
    }
  });

  test('may leave out optional fields, or set them to null', async () => {
    const answer = await post({ target: TARGET, payload: null, key: null, runAt: null });
    expect([answer.status, answer.body['key']]).toEqual([201, null]);
  });

  test('is found among all runs by its trigger and key, and among runs without a schedule', async () => {
    await api.call('PUT', '/api/v1/schedules/other', SCHEDULE);
    await api.call('POST', '/api/v1/schedules/other/fire', {}, { 'idempotency-key': 'both' });
    const id = await created({ target: TARGET, key: 'both' });
    expect(idsOf(await api.call('GET', '/api/v1/runs?trigger=api&key=both'))).toEqual([id]);
    expect(idsOf(await api.call('GET', '/api/v1/runs?key=both'))).toHaveLength(2);
    const ofOther = itemsOf(await api.call('GET', '/api/v1/runs?scheduleId=other'));
    expect(ofOther.map((run) => run['scheduleId'])).toEqual(['other']);
    const all = itemsOf(await api.call('GET', '/api/v1/runs?trigger=api&limit=500'));
    expect(new Set(all.map((run) => run['scheduleId']))).toEqual(new Set([null]));
  });
});

describe('a key', () => {
  test('makes one run, however often it is used at the same time', async () => {
    const body = { target: TARGET, payload: { n: 1 }, key: 'once' };
    const answers = await Promise.all(Array.from({ length: 8 }, () => post(body)));
    expect(answers.map(({ status }) => status).sort()).toEqual([...Array<number>(7).fill(200), 201]);
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
    expect(new Set(answers.map(({ headers }) => headers.get('location'))).size).toBe(1);
  });

  test('stands for one run whatever the order of the members, and whether defaults are written out or not', async () => {
    const first = await post({ target: TARGET, key: 'same', priority: 'normal' });
    const again = await post({ key: 'same', target: { ...TARGET, method: 'POST', headers: {} }, retry: {} });
    expect([again.status, again.body['id']]).toEqual([200, first.body['id']]);
  });

  test.each([
    ['payload', { payload: 2 }],
    ['target', { target: { ...TARGET, url: 'https://example.com/other' } }],
    ['header', { target: { ...TARGET, headers: { A: 'b' } } }],
    ['runAt', { runAt: '2031-01-01T00:00:00Z' }],
    ['priority', { priority: 'low' }],
    ['retry', { retry: { maxAttempts: 1 } }],
    ['onDependencyFailure', { onDependencyFailure: 'run' }],
  ])('with another %s is 422, and stores nothing', async (_name, other) => {
    const body = { target: TARGET, payload: 1, key: 'other-body' };
    await post(body);
    const before = await count();
    const answer = await post({ ...body, ...other });
    expect([answer.status, faultPaths(answer), await count()]).toEqual([422, ['/key'], before]);
    expect((await post(body)).status).toBe(200);
  });

  test('is 1 to 256 characters of any kind', async () => {
    const longest = '\u{1f600}'.repeat(256);
    const id = await created({ target: TARGET, key: longest });
    expect(idsOf(await api.call('GET', `/api/v1/runs?key=${encodeURIComponent(longest)}`))).toEqual([id]);
    for (const key of ['', `${longest}x`, 7]) {
      const answer = await post({ target: TARGET, key });
      expect([answer.status, faultPaths(answer)]).toEqual([400, ['/key']]);
    }
  });
});

describe('dependencies', () => {
  test('are waited for, and shown on both sides in the order of the list', async () => {
    const [a, b] = [await created({ target: TARGET }), await created({ target: TARGET })];
    api.justWoken();
    const id = await created({ target: TARGET, dependsOn: [b.toUpperCase(), a] });
    expect(api.justWoken()).toEqual({ effects: 0, dispatch: 0, workers: 0, admission: 0, alerts: 0 });
    expect((await get(id)).body).toMatchObject({
      status: 'waiting',
      dependsOn: [b, a],
      nextAttemptAt: null,
    });
    expect((await get(a)).body).toMatchObject({ dependents: [id], status: 'pending' });
  });

  test('that have succeeded make no run wait', async () => {
    const a = await created({ target: TARGET });
    await end(a, 'succeeded');
    const id = await created({ target: TARGET, dependsOn: [a] });
    expect((await get(id)).body).toMatchObject({ status: 'pending', dependsOn: [a] });
  });

  test('that have failed already are handled at once', async () => {
    const a = await created({ target: TARGET });
    await end(a, 'failed');
    api.justWoken();
    const id = await created({ target: TARGET, dependsOn: [a] });
    expect((await get(id)).body).toMatchObject({
      status: 'failed',
      error: { kind: 'dependency' },
      attempts: 0,
    });
    expect(api.justWoken()).toMatchObject({ dispatch: 0 });
    const all = await created({ target: TARGET, dependsOn: [a], onDependencyFailure: 'run' });
    expect((await get(all)).body).toMatchObject({ status: 'pending' });
  });

  test('that are unknown are 422, each of them named, and nothing is stored', async () => {
    const known = await created({ target: TARGET });
    const before = await count();
    const unknown = [
      known.replace(/.$/, (last) => (last === '0' ? '1' : '0')),
      'ffffffff-ffff-ffff-ffff-ffffffffffff',
      '00000000-0000-0000-0000-000000000000',
    ];
    const answer = await post({ target: TARGET, key: 'k-unknown', dependsOn: [known, ...unknown] });
    expect(answer.status).toBe(422);
    expect(errorsOf(answer).map(({ path }) => path)).toEqual(['/dependsOn/1', '/dependsOn/2', '/dependsOn/3']);
    expect(errorsOf(answer)[0]?.message).toContain(unknown[0]);
    expect(await count()).toBe(before);
  });

  test('that are malformed, or repeated, are 400', async () => {
    const known = await created({ target: TARGET });
    const before = await count();
    const dependsOn = [known, 'x', known.toUpperCase(), 7, null, '', `${known} `];
    const answer = await post({ target: TARGET, dependsOn });
    expect([answer.status, faultPaths(answer)]).toEqual([400, [1, 2, 3, 4, 5, 6].map((n) => `/dependsOn/${n}`)]);
    expect(errorsOf(answer).find(({ path }) => path === '/dependsOn/2')?.message).toBe('repeats dependsOn/0');
    expect(await count()).toBe(before);
  });
});

describe('a call is refused, and stores nothing, for', () => {
  const refused = async (body: unknown, status: number, paths: string[]) => {
    const before = await count();
    const answer = await post(body);
    expect([answer.status, faultPaths(answer)]).toEqual([status, paths]);
    expect(answer.headers.get('content-type')).toMatch(/^application\/problem\+json/);
    expect(await count()).toBe(before);
    return answer;
  };

  test('every fault at once', async () => {
    await refused(
      {
        target: { type: 'http', url: 'ftp://x', headers: { 'a b': 'x' } },
        key: '',
        runAt: '2030-02-30T00:00:00Z',
        dependsOn: ['x'],
        onDependencyFailure: 'ignore',
        retry: { maxAttempts: 0, more: 1 },
        timeoutSeconds: 0,
        completion: 'later',
        completionTimeoutSeconds: 0,
        delivery: 'exactlyOnce',
        priority: 'urgent',
        ref: 'x',
        scheduleId: 'y',
      },
      400,
      [
        '/completion',
        '/completionTimeoutSeconds',
        '/delivery',
        '/dependsOn/0',
        '/key',
        '/onDependencyFailure',
        '/priority',
        '/ref',
        '/retry/maxAttempts',
        '/retry/more',
        '/runAt',
        '/scheduleId',
        '/target/headers/a b',
        '/target/url',
        '/timeoutSeconds',
      ],
    );
  });

  test.each([
    '2030-01-01',
    '2030-01-01T00:00:00',
    '2030-01-01T24:00:00Z',
    '2030-13-01T00:00:00Z',
    '1999-12-31T23:59:59.999Z',
    '2100-01-01T00:00:00.001Z',
    'now',
    '',
    1_900_000_000_000,
    true,
  ])('runAt %j', async (runAt) => {
    await refused({ target: TARGET, runAt }, 400, ['/runAt']);
  });

  test('a missing target, or one of an unknown kind', async () => {
    await refused({}, 400, ['/target']);
    await refused({ target: null }, 400, ['/target']);
    await refused({ target: { type: 'queue', queue: 'x' } }, 400, ['/target/type']);
    await refused({ target: { type: 'pull', queue: 'a/b' } }, 400, ['/target/queue']);
    await refused({ target: { type: 'pull', queue: 'a', url: 'https://x' } }, 400, ['/target/url']);
  });

  test('masked header values: there is no stored value to keep', async () => {
    const lookup = { url: TARGET.url, headers: { B: '***' } };
    const answer = await refused({ target: { ...TARGET, headers: { A: '***' }, lookup, cancel: lookup } }, 400, [
      '/target/cancel/headers/B',
      '/target/headers/A',
      '/target/lookup/headers/B',
    ]);
    expect(errorsOf(answer)[0]?.message).toBe('is "***", but there is no stored value to keep');
  });

  test('a payload over 64 KiB', () => refused({ target: TARGET, payload: 'x'.repeat(64 * 1024) }, 400, ['/payload']));

  test('a body over 256 KiB', () => refused({ target: TARGET, payload: 'x'.repeat(256 * 1024) }, 413, []));

  const target = JSON.stringify(TARGET);
  test.each([
    ['a NUL in the key', `{"target":${target},"key":"a\\u0000"}`, ['/key']],
    ['half a surrogate pair in the key', `{"target":${target},"key":"\\ud800"}`, ['/key']],
    ['a NUL in the queue', '{"target":{"type":"pull","queue":"a\\u0000"}}', ['/target/queue']],
    ['a NUL in a dependency', `{"target":${target},"dependsOn":["\\u0000"]}`, ['/dependsOn/0']],
    ['dependencies that are no list', `{"target":${target},"dependsOn":"x"}`, ['/dependsOn']],
  ])('%s', async (_name, body, paths) => {
    await refused(body, 400, paths);
  });
});
