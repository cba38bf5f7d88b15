import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { changeRun } from '../../support/run-rows.ts';
import { type Answer, type Json, SCHEDULE, TARGET, faultPaths, quietApi } from '../api.ts';
import { ATTACK } from '../../support/runner/attack.ts';

const api = quietApi();

const PULL = { type: 'pull', queue: 'work' };

const act = (id: string, action: string, body?: unknown) => api.call('POST', `/api/v1/runs/${id}/${action}`, body);
const read = async (id: string) => (await api.call('GET', `/api/v1/runs/${id}`)).body;
const textOf = (value: unknown) => value as string;

async function made(more: object = {}): Promise<string> {
  const { body } = await api.call('POST', '/api/v1/runs', { target: TARGET, ...more });
  return textOf(body['id']);
}

/** A run as the flow would have left it, so that nothing has to be sent. */
async function be(id: string, row: Record<string, unknown>): Promise<string> {
  await changeRun(api.sql, id, row);
  return id;
}

const moment = (seconds: number) => new Date(Date.now() + seconds * 1000).toISOString();

/** The claim's worker. */
const BY = { workerId: 'w-1' };

/** Claimed by a worker, for ten seconds, of which one is left. */
async function leased(more: object = {}): Promise<string> {
  return be(await made({ target: PULL, ...more }), {
    status: 'running',
    attempts: 1,
    claimed_by: randomUUID(),
    claimed_at: moment(-9),
    handoff_started_at: moment(-9),
    handed_off_at: moment(-9),
    worker_id: BY.workerId,
    lateness_ms: 0,
    lease_seconds: 10,
    expires_at: moment(1),
  });
}

/** Accepted by its target, which has an hour to complete it, of which a minute is left. */
async function accepted(more: object = {}): Promise<string> {
  return be(await made({ completion: 'callback', ...more }), {
    status: 'running',
    attempts: 1,
    claimed_by: randomUUID(),
    claimed_at: moment(-3540),
    handoff_started_at: moment(-3540),
    handed_off_at: moment(-3540),
    lateness_ms: 0,
    result_status_code: 202,
    result_body: 'taken',
    lease_seconds: 3600,
    expires_at: moment(60),
  });
}

const started = async () =>
  be(await made(), {
    attempts: 1,
    claimed_by: randomUUID(),
    claimed_at: moment(-1),
    handoff_started_at: moment(-1),
  });
const ended = async (status: string, more: Record<string, unknown> = {}) =>
  be(await made(), { status, attempts: 1, finished_at: moment(-1), ...more });

function expectProblem(answer: Answer, status: number, paths: string[] = []): void {
  expect([answer.status, faultPaths(answer)]).toEqual([status, paths]);
  expect(answer.headers.get('content-type')).toMatch(/^application\/problem\+json/);
}

/** The refusal says something, and the run is as it was. */
async function refused(id: string, action: string, body: unknown, says: RegExp): Promise<void> {
  const before = await read(id);
  const answer = await act(id, action, body);
  expectProblem(answer, 409);
  expect(textOf(answer.body['detail'])).toMatch(says);
  const { status, reason, attempts } = before;
  expect(answer.body['run']).toEqual({ status, reason, attempts });
  expect(await read(id)).toEqual(before);
}

/** As GET answers it, but for the log and what it goes to. */
async function done(answer: Answer): Promise<Json> {
  expect([answer.status, answer.text]).toEqual([200, expect.any(String)]);
  const { attemptLog, target, ...run } = await read(textOf(answer.body['id']));
  expect([attemptLog, target]).toEqual([expect.any(Array), expect.any(Object)]);
  expect(answer.body).toEqual(run);
  return answer.body;
}

describe('/cancel', () => {
  test.each<[string, () => Promise<string>]>([
    ['waiting', async () => made({ dependsOn: [await made()] })],
    ['pending', () => made()],
    ['pending while it is sent', started],
    ['running with a worker', leased],
    ['running at its target', accepted],
  ])('ends a run that is %s, and again is the same', async (_name, make) => {
    const id = await make();
    const run = await done(await act(id, 'cancel'));
    expect(run).toMatchObject({
      status: 'cancelled',
      reason: 'request',
      leaseUntil: null,
      completionDueAt: null,
    });
    expect(run['finishedAt']).not.toBeNull();
    expect((await act(id, 'cancel', {})).body).toEqual(run);
  });

  test.each(['succeeded', 'failed', 'unknown', 'abandoned', 'skipped'])(
    'of a run that is %s is 409',
    async (status) => {
      await refused(await ended(status), 'cancel', undefined, new RegExp(`ended as ${status}`));
    },
  );
});

describe('/retry', () => {
  test.each(['failed', 'unknown', 'abandoned', 'skipped', 'cancelled'])(
    'opens a run that is %s again',
    async (status) => {
      const id = await ended(status, {
        failures: 5,
        recoveries: 2,
        reason: 'request',
        result_status_code: 500,
        result_body: 'x',
        error: { kind: 'http', message: 'the target answered 500', statusCode: 500 },
      });
      api.justWoken();
      expect(await done(await act(id, 'retry', {}))).toMatchObject({
        status: 'pending',
        reason: null,
        attempts: 1,
        failures: 0,
        recoveries: 0,
        finishedAt: null,
        result: null,
        error: null,
      });
      expect(api.justWoken()).toEqual({ effects: 0, dispatch: 1, workers: 0, admission: 0, alerts: 0 });
      await refused(id, 'retry', undefined, /pending/);
    },
  );

  test.each<[string, () => Promise<string>]>([
    ['succeeded', () => ended('succeeded')],
    ['pending', () => made()],
    ['running', leased],
    ['waiting', async () => made({ dependsOn: [await made()] })],
  ])('of a run that is %s is 409', async (status, make) => {
    await refused(await make(), 'retry', undefined, new RegExp(status));
  });

  test('uses the current version of its schedule, and is 409 when that is gone', async () => {
    await api.call('PUT', '/api/v1/schedules/retried', SCHEDULE);
    const { body } = await api.call('POST', '/api/v1/schedules/retried/fire');
    const id = await be(textOf(body['id']), { status: 'failed', finished_at: moment(-1) });
    await api.call('PUT', '/api/v1/schedules/retried', { ...SCHEDULE, timeoutSeconds: 7, priority: 'high' });
    expect(await done(await act(id, 'retry'))).toMatchObject({ scheduleVersion: 2, priority: 'high' });
    await be(id, { status: 'failed', finished_at: moment(-1) });
    await api.call('DELETE', '/api/v1/schedules/retried');
    await refused(id, 'retry', undefined, /schedule of the run was deleted/);
  });
});

describe('/complete', () => {
  test.each<[string, () => Promise<string>, object?]>([
    ['running with a worker', leased, BY],
    ['running at its target', accepted],
    ['pending while an attempt is under way', started],
    ['unknown', () => ended('unknown', { error: { kind: 'expired', message: 'x' } })],
  ])('ends a run that is %s, and again with the same outcome is the same', async (_name, make, by = {}) => {
    const id = await make();
    const run = await done(await act(id, 'complete', { ...by, status: 'succeeded', result: { rows: 3 } }));
    expect(run).toMatchObject({
      status: 'succeeded',
      reason: null,
      error: null,
      result: { body: '{"rows":3}' },
      leaseUntil: null,
      completionDueAt: null,
    });
    const again = await act(id, 'complete', { ...by, status: 'succeeded', result: 'other' });
    expect([again.status, again.body]).toEqual([200, run]);
    await refused(id, 'complete', { status: 'failed' }, /ended as succeeded/);
  });

  test('as failed is final, with the error', async () => {
    const id = await leased({ retry: { maxAttempts: 5 } });
    expect(await done(await act(id, 'complete', { ...BY, status: 'failed', error: 'no space left' }))).toMatchObject({
      status: 'failed',
      error: { kind: 'reported', message: 'no space left' },
      result: null,
    });
    await refused(id, 'complete', { status: 'succeeded' }, /ended as failed/);
    expect((await act(id, 'complete', { ...BY, status: 'failed', error: 'again' })).body['error']).toMatchObject({
      message: 'no space left',
    });
    const bare = await done(
      await act(await leased(), 'complete', { ...BY, status: 'failed', error: null, result: null }),
    );
    expect(bare).toMatchObject({ error: { kind: 'reported' }, result: null });
  });

  test.each([
    ['"plain \\u00e9 text"', 'plain é text'],
    ['"{\\"a\\": 1.0}"', '{"a": 1.0}'],
    [' {"a" : 1.0, "b":12345678901234567890.10 } ', '{"a" : 1.0, "b":12345678901234567890.10 }'],
    ['[ 1e400 ]', '[ 1e400 ]'],
    ['-0.0', '-0.0'],
    ['false', 'false'],
    ['"a\\u0000b\\ud800"', 'a�b�'],
    ['{"a":"\\u0000\\ud800"}', '{"a":"\\u0000\\ud800"}'],
  ])('keeps the result %s as text', async (source, kept) => {
    const answer = await act(await leased(), 'complete', `{"workerId":"w-1","status":"succeeded","result":${source}}`);
    expect((await done(answer))['result']).toEqual({ statusCode: null, body: kept });
  });

  test('cuts a result, and an error, at 4 KiB and between characters', async () => {
    const long = `x${'é'.repeat(60_000)}`;
    const id = await leased();
    const run = await done(await act(id, 'complete', { ...BY, status: 'failed', result: long, error: long }));
    expect(run).toMatchObject({
      result: { body: `x${'é'.repeat(2047)}` },
      error: { kind: 'reported', message: `x${'é'.repeat(2047)}` },
    });
    const list = await done(
      await act(await leased(), 'complete', { ...BY, status: 'succeeded', result: Array(60_000).fill(1) }),
    );
    expect(list['result']).toMatchObject({ body: `[${'1,'.repeat(2048)}`.slice(0, 4096) });
  });

  test('as failed for now is tried again, and again the same report changes nothing', async () => {
    const id = await leased();
    const word = { ...BY, status: 'failed', retry: true, error: 'no space', result: 'half' };
    api.justWoken();
    const run = await done(await act(id, 'complete', word));
    expect(run).toMatchObject({ status: 'pending', attempts: 1, failures: 1, result: { body: 'half' } });
    expect(run).toMatchObject({ leaseUntil: null, error: { kind: 'reported', message: 'no space' } });
    expect(api.justWoken()).toMatchObject({ effects: 0, workers: 1 });
    expect(await done(await act(id, 'complete', word))).toEqual(run);
    const plain = await done(await act(await leased(), 'complete', { ...BY, status: 'failed', retry: false }));
    expect(plain['status']).toBe('failed');
  });

  test('for an attempt, or by a worker, that is not the current one is 409', async () => {
    const id = await leased();
    await refused(id, 'complete', { status: 'succeeded', attempt: 2 }, /attempt 2 is not the current one/);
    await refused(id, 'complete', { status: 'succeeded', workerId: 'w-2' }, /not claimed by worker w-2$/);
    await refused(id, 'complete', { status: 'succeeded', attempt: 1 }, /workerId must name it$/);
    const answer = await act(id, 'complete', { status: 'succeeded', attempt: 1, workerId: 'w-1' });
    expect((await done(answer))['status']).toBe('succeeded');
  });

  test.each<[string, () => Promise<string>]>([
    ['pending', () => made()],
    ['waiting', async () => made({ dependsOn: [await made()] })],
    ['abandoned', () => ended('abandoned', { reason: 'age' })],
    ['skipped', () => ended('skipped', { reason: 'overlap' })],
    ['cancelled', () => ended('cancelled', { reason: 'request' })],
  ])('of a run that is %s is 409', async (status, make) => {
    await refused(await make(), 'complete', { status: 'succeeded' }, new RegExp(status));
  });

  test.each<[unknown, string[]]>([
    [{}, ['/status']],
    [{ status: 'done' }, ['/status']],
    [{ status: 'cancelled' }, ['/status']],
    [{ status: 'succeeded', error: 'x' }, ['/error']],
    [{ status: 'succeeded', error: '' }, ['/error']],
    [{ status: 'succeeded', retry: true, error: 'x' }, ['/error', '/retry']],
    [{ status: 'failed', retry: 'true' }, ['/retry']],
    [
      { status: 'x', error: 7, attempt: 0, workerId: '', progress: 1, payload: 1 },
      ['/attempt', '/error', '/payload', '/progress', '/status', '/workerId'],
    ],
    [{ status: 'failed', attempt: 1.5 }, ['/attempt']],
    [{ status: 'failed', attempt: 2 ** 31 }, ['/attempt']],
    [{ status: 'failed', attempt: '1' }, ['/attempt']],
    [{ status: 'failed', workerId: 'x'.repeat(257) }, ['/workerId']],
    ['{"status":"failed","error":"\\u0000"}', ['/error']],
    ['{"status":"failed","workerId":"\\ud800"}', ['/workerId']],
    ['{"status":"succeeded","__proto__":{"status":"failed"}}', ['/__proto__']],
    [`{"status":"succeeded","result":${'['.repeat(64)}${']'.repeat(64)}}`, []],
    ['{"status":"succeeded","result":nope}', []],
    [undefined, ['']],
  ])('with %j is 400, and ends nothing', async (body, paths) => {
    const id = await leased();
    const before = await read(id);
    expectProblem(await act(id, 'complete', body), 400, paths);
    expect(await read(id)).toEqual(before);
  });
});

describe('/heartbeat', () => {
  const until = (run: Json, name: string) => Date.parse(textOf(run[name]));

  test('extends a lease by its own length', async () => {
    const id = await leased();
    const before = await read(id);
    expect(before).toMatchObject({ queue: 'work', workerId: 'w-1', completionDueAt: null, progress: null });
    const run = await done(await act(id, 'heartbeat', { attempt: 1, workerId: 'w-1', progress: 0.25 }));
    expect(run).toMatchObject({ status: 'running', progress: 0.25, completionDueAt: null });
    expect(until(run, 'leaseUntil')).toBeGreaterThan(until(before, 'leaseUntil') + 5000);
    expect((await done(await act(id, 'heartbeat', BY)))['progress']).toBe(0.25);
  });

  test('for an attempt, or by a worker, that is not the current one is 409', async () => {
    await refused(await leased(), 'heartbeat', { attempt: 2 }, /attempt 2 is not the current one/);
    await refused(await leased(), 'heartbeat', { workerId: 'w-2' }, /not claimed by worker w-2$/);
    await refused(await leased(), 'heartbeat', { attempt: 1 }, /workerId must name it$/);
    await refused(await leased(), 'heartbeat', undefined, /workerId must name it$/);
    await refused(await accepted(), 'heartbeat', { workerId: 'w-2' }, /w-2/);
  });

  test.each(['succeeded', 'failed', 'unknown', 'abandoned', 'skipped', 'cancelled'])(
    'of a run that is %s is 409',
    async (status) => refused(await ended(status), 'heartbeat', {}, new RegExp(`ended as ${status}`)),
  );

  test('for a run whose first attempt has not started is 409', async () => {
    await refused(await made(), 'heartbeat', {}, /no attempt has started/);
  });

  test.each<[unknown, string[]]>([
    [{ progress: 1.1 }, ['/progress']],
    [{ progress: -0.1 }, ['/progress']],
    [{ progress: '1', attempt: -1, workerId: 7, status: 'running' }, ['/attempt', '/progress', '/status', '/workerId']],
    ['{"progress":1e999}', ['/progress']],
  ])('with %j is 400', async (body, paths) => {
    expectProblem(await act(await leased(), 'heartbeat', body), 400, paths);
  });
});

describe('/release', () => {
  test('of a claimed run makes it pending at once, and again is the same', async () => {
    const id = await leased();
    api.justWoken();
    const run = await done(await act(id, 'release', { ...BY, attempt: 1 }));
    expect(run).toMatchObject({
      status: 'pending',
      attempts: 1,
      failures: 0,
      claimedBy: null,
      leaseUntil: null,
    });
    expect(Date.parse(textOf(run['nextAttemptAt']))).toBeLessThanOrEqual(Date.now());
    expect(api.justWoken()).toMatchObject({ workers: 1, effects: 0 });
    expect(await done(await act(id, 'release', BY))).toEqual(run);
  });

  test('of a run that has progress, that no worker has, or that another one has, is 409', async () => {
    const begun = await leased();
    await act(begun, 'heartbeat', { ...BY, progress: 0 });
    await refused(begun, 'release', BY, /has begun the run, by its progress/);
    await refused(await made(), 'release', undefined, /no worker has claimed the run/);
    await refused(await accepted(), 'release', {}, /no worker has claimed the run/);
    await refused(await leased(), 'release', { workerId: 'w-2' }, /not claimed by worker w-2$/);
    await refused(await leased(), 'release', { attempt: 1 }, /workerId must name it$/);
    await refused(await leased(), 'release', { ...BY, attempt: 2 }, /attempt 2 is not the current one/);
    await refused(await ended('failed', { worker_id: 'w-1' }), 'release', BY, /ended as failed/);
  });

  test.each<[unknown, string[]]>([[{ attempt: 0, progress: 1, workerId: '' }, ['/attempt', '/progress', '/workerId']]])(
    'with %j is 400',
    async (body, paths) => {
      expectProblem(await act(await leased(), 'release', body), 400, paths);
    },
  );
});

describe('every action', () => {
  const BODIES = [
    ['cancel', undefined],
    ['retry', undefined],
    ['complete', { ...BY, status: 'succeeded' }],
    ['heartbeat', BY],
    ['release', BY],
  ] as const;

  test.each(BODIES)('/%s of an unknown run is 404', async (action, body) => {
    const id = await made();
    const unknown = [
      id.replace(/.$/, (last) => (last === '0' ? '1' : '0')),
      'ffffffff-ffff-ffff-ffff-ffffffffffff',
      '00000000-0000-0000-0000-000000000000',
    ];
    for (const one of unknown) expectProblem(await act(one, action, body), 404);
  });

  test.each(BODIES)('/%s takes an id in capital letters', async (action, body) => {
    const id = await leased();
    if (action !== 'retry') expect((await act(id.toUpperCase(), action, body)).status).toBe(200);
  });

  test.each([
    ['cancel', { reason: 'x' }, ['/reason']],
    ['retry', { now: true }, ['/now']],
  ] as const)('/%s with %j is 400', async (action, body, paths) => {
    const id = await leased();
    const before = await read(id);
    expectProblem(await act(id, action, body), 400, [...paths]);
    expect(await read(id)).toEqual(before);
  });
});

const connect = (id: string, url: string) => api.call('PUT', `/api/v1/connections/${id}`, { url });

/** A one-off run that ended before it was sent; far ahead, so that nothing else happens to it. */
async function cancelled(connection: string, headers: Record<string, string> = {}): Promise<string> {
  const target = { type: 'http', connection, url: '/x', headers };
  const { body } = await api.call('POST', '/api/v1/runs', { target, runAt: '2099-01-01T00:00:00Z' });
  const id = body['id'] as unknown as string;
  expect((await api.call('POST', `/api/v1/runs/${id}/cancel`)).status).toBe(200);
  return id;
}

async function retried(id: string) {
  const { status, body } = await api.call('POST', `/api/v1/runs/${id}/retry`);
  return [status, body['detail']];
}

test('a one-off run is not opened again once its connection is gone', async () => {
  await connect('left', 'https://a.example');
  const id = await cancelled('left');
  expect((await api.call('DELETE', '/api/v1/connections/left')).status).toBe(204);
  expect(await retried(id)).toEqual([409, expect.stringContaining('the connection of the run was deleted: left')]);
});

test(
  'its own header values do not follow a connection that goes elsewhere now, one by one or in bulk',
  { tags: [ATTACK] },
  async () => {
    await connect('moved', 'https://a.example');
    const [sending, bare] = [await cancelled('moved', { 'X-Key': 'secret' }), await cancelled('moved')];
    expect((await connect('moved', 'https://a.example/v2')).status).toBe(200);
    await api.call('DELETE', '/api/v1/connections/moved');
    await connect('moved', 'https://evil.example');
    expect(await retried(sending)).toEqual([
      409,
      expect.stringContaining('the connection moved goes elsewhere now, and the run has header values of its own'),
    ]);
    expect((await retried(bare))[0]).toBe(200);
    const again = { action: 'retry', filter: { status: 'cancelled', from: '2098-01-01T00:00:00Z' } };
    expect((await api.call('POST', '/api/v1/runs/bulk', again)).body).toMatchObject({ changed: 0 });
  },
);
