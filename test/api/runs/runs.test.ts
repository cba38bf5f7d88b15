import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { isoInstant } from '../../../src/core/instant.ts';
import { plannedRunId } from '../../../src/core/runs/run.ts';
import { insertRuns } from '../../support/run-rows.ts';
import { ANSWERED_TARGET, type Answer, type Json, SCHEDULE, faultPaths, sharedApi } from '../api.ts';

const api = sharedApi();

const put = (id: string) =>
  api.call('PUT', `/api/v1/schedules/${id}`, { ...SCHEDULE, payload: { own: 1.5 } });
const fire = (id: string, body?: unknown, headers?: Record<string, string>) =>
  api.call('POST', `/api/v1/schedules/${id}/fire`, body, headers);
const textOf = (value: unknown) => value as string;
const items = (answer: Answer) => answer.body['items'] as unknown as Json[];

/** A run as planning would have recorded it, so that history need not be waited for. */
async function record(scheduleId: string, at: number, more: Record<string, unknown> = {}): Promise<string> {
  const [found] = await api.sql<{ uid: string }[]>`SELECT uid FROM schedules WHERE id = ${scheduleId}`;
  const uid = found?.uid ?? '';
  const id = plannedRunId(uid, at);
  const row = {
    id,
    scheduled_for: isoInstant(at),
    schedule_uid: uid,
    schedule_version: 1,
    schedule_id: scheduleId,
    trigger: 'schedule',
    status: 'succeeded',
    lane: 'http https://example.com',
    priority: 1,
    due_at: isoInstant(at),
    attempts: 1,
    created_at: isoInstant(at),
    updated_at: isoInstant(at),
    ...more,
  };
  await insertRuns(api.sql, [row]);
  return id;
}

describe('fire', () => {
  test('answers 202, the run, and its place', async () => {
    await put('fired');
    const before = api.woken();
    const answer = await fire('fired');
    expect(answer.status).toBe(202);
    const { body } = answer;
    expect(answer.headers.get('location')).toBe(`/api/v1/runs/${textOf(body['id'])}`);
    expect(api.woken()).toBe(before + 1);
    expect(body).toMatchObject({
      name: null,
      scheduleId: 'fired',
      scheduleVersion: 1,
      trigger: 'manual',
      status: 'pending',
      reason: null,
      attempts: 0,
      failures: 0,
      recoveries: 0,
      coalesced: 0,
      coalescedFrom: null,
      claimedBy: null,
      finishedAt: null,
      result: null,
      error: null,
      key: null,
      payload: { own: 1.5 },
      priority: 'normal',
      dependsOn: [],
      dependents: [],
      parentRunId: null,
      notifierId: null,
      queue: null,
      workerId: null,
      leaseUntil: null,
    });
    expect(body['nextAttemptAt']).toBe(body['scheduledFor']);
    const read = await api.call('GET', `/api/v1/runs/${textOf(body['id']).toUpperCase()}`);
    expect(read.body).toEqual({ ...body, target: ANSWERED_TARGET, attemptLog: [] });
  });

  test('takes a payload, no body, an empty one, and nothing else', async () => {
    await put('bodies');
    expect((await fire('bodies', { payload: [1] })).body['payload']).toEqual([1]);
    expect((await fire('bodies', {})).body['payload']).toEqual({ own: 1.5 });
    expect((await fire('bodies', { payload: null })).body['payload']).toEqual({ own: 1.5 });
    expect((await fire('bodies', '')).status).toBe(202);
    for (const body of ['null', '[]', '7', '{"payload":1,"now":true}'])
      expect((await fire('bodies', body)).status).toBe(400);
  });

  test('with a key makes one run, however often it is called', async () => {
    await put('keyed');
    const key = { 'idempotency-key': 'order 1 / a' };
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => fire('keyed', { payload: { n: 1 } }, key)),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([...Array<number>(7).fill(200), 202]);
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
    expect(answers[0]?.body['key']).toBe('order 1 / a');
    expect((await fire('keyed', { payload: { n: 2 } }, key)).status).toBe(422);
    expect((await fire('keyed', undefined, key)).status).toBe(422);
    await put('keyed-2');
    expect((await fire('keyed-2', { payload: { n: 1 } }, key)).status).toBe(202);
  });

  test('its key finds it again, among those of every schedule', async () => {
    await put('keyed-a');
    await put('keyed-b');
    const key = { 'idempotency-key': 'same-in-both' };
    const fired = [await fire('keyed-a', undefined, key), await fire('keyed-b', undefined, key)];
    const all = await api.call('GET', '/api/v1/runs?key=same-in-both');
    expect(
      items(all)
        .map((run) => run['id'])
        .sort(),
    ).toEqual(fired.map((answer) => answer.body['id']).sort());
    const one = await api.call('GET', '/api/v1/runs?key=same-in-both&scheduleId=keyed-b');
    expect(items(one).map((run) => run['id'])).toEqual([fired[1]?.body['id']]);
    expect(items(await api.call('GET', '/api/v1/runs?key=never-used'))).toEqual([]);
  });

  test.each(['', 'x'.repeat(256), 'a\tb', 'caf\u00e9'])('refuses the key %j', async (key) => {
    await put('bad-key');
    const answer = await fire('bad-key', undefined, { 'idempotency-key': key });
    expect([answer.status, faultPaths(answer)]).toEqual([400, ['Idempotency-Key']]);
  });

  test('refuses a key given twice', async () => {
    await put('two-keys');
    const answer = await api.raw(
      'POST /api/v1/schedules/two-keys/fire HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n' +
        'Idempotency-Key: a\r\nIdempotency-Key: b\r\nContent-Length: 0\r\n\r\n',
    );
    expect(answer).toMatch(/^HTTP\/1.1 400 /);
    expect(answer).toContain('"Idempotency-Key"');
  });

  test('works for a paused schedule, and is 404 for an unknown one', async () => {
    await api.call('PUT', '/api/v1/schedules/paused', { ...SCHEDULE, enabled: false });
    expect((await fire('paused')).status).toBe(202);
    expect((await fire('nobody')).status).toBe(404);
  });
});

describe('one run', () => {
  test('planned has its launch name, and a plain success one entry in its log', async () => {
    await put('told');
    const at = Date.UTC(2026, 0, 2, 3, 4, 5);
    const instance = randomUUID();
    const times = {
      handoff_started_at: isoInstant(at + 5),
      handed_off_at: isoInstant(at + 9),
      finished_at: isoInstant(at + 9),
    };
    const id = await record('told', at, {
      claimed_by: instance,
      ...times,
      result_status_code: 200,
      result_body: 'ok',
    });
    const { body } = await api.call('GET', `/api/v1/runs/${id}`);
    expect(body).toMatchObject({
      name: 'told@2026-01-02T03:04:05.000Z',
      scheduledFor: '2026-01-02T03:04:05.000Z',
      result: { statusCode: 200, body: 'ok' },
      nextAttemptAt: null,
      payload: { own: 1.5 },
    });
    expect(body['attemptLog']).toEqual([
      {
        attempt: 1,
        instanceId: instance,
        startedAt: isoInstant(at + 5),
        finishedAt: isoInstant(at + 9),
        outcome: 'accepted',
        statusCode: 200,
        recovery: false,
      },
    ]);
  });

  test('shows its attempts in order, without absent fields', async () => {
    await put('tried');
    const at = Date.UTC(2026, 0, 2);
    const attempt_log = [1, 2].map((attempt) => ({
      attempt,
      instanceId: randomUUID(),
      startedAt: at,
      finishedAt: at + 1,
      outcome: 'transient',
      statusCode: attempt === 1 ? 503 : null,
      error: { kind: 'network', message: 'reset' },
      recovery: attempt === 2,
      lookup: null,
    }));
    const id = await record('tried', at, { status: 'failed', attempts: 2, failures: 2, attempt_log });
    const log = (await api.call('GET', `/api/v1/runs/${id}`)).body['attemptLog'] as unknown as Json[];
    expect(log.map((entry) => [entry['attempt'], entry['statusCode'], entry['recovery']])).toEqual([
      [1, 503, false],
      [2, undefined, true],
    ]);
    expect(log[0]?.['error']).toEqual({ kind: 'network', message: 'reset' });
  });

  test.each([
    randomUUID(),
    'ffffffff-ffff-ffff-ffff-ffffffffffff',
    '00000000-0000-0000-0000-000000000000',
    '019b76da-a800-7000-8000-000000000000',
  ])('is 404 for %s', async (id) => {
    expect((await api.call('GET', `/api/v1/runs/${id}`)).status).toBe(404);
  });

  test.each(['nope', '1', '%00', 'a%2Fb', '019b76da-a800-7000-8000-00000000000g'])(
    'is 400 for %s',
    async (id) => {
      const answer = await api.call('GET', `/api/v1/runs/${id}`);
      expect([answer.status, faultPaths(answer)]).toEqual([400, ['id']]);
    },
  );
});

describe('lists', () => {
  const at = Date.UTC(2026, 5, 1);
  beforeAll(async () => {
    for (const id of ['l-a', 'l-b', 'l-gone']) await put(id);
    for (let n = 0; n < 4; n += 1) {
      await record('l-a', at + n * 1000);
      await record('l-b', at + n * 1000, {
        status: n % 2 ? 'failed' : 'succeeded',
        trigger: n === 0 ? 'catchUp' : 'schedule',
      });
      // Manual runs of the very same moment.
      for (let m = 0; m < 3; m += 1) {
        const [run] = await api.sql<{ uid: string }[]>`SELECT uid FROM schedules WHERE id = 'l-a'`;
        const id = `${(at + n * 1000)
          .toString(16)
          .padStart(12, '0')
          .replace(/^(.{8})/, '$1-')}-7000-8000-${String(m).padStart(12, '0')}`;
        await record('l-a', at + n * 1000, {
          id,
          schedule_uid: run?.uid,
          trigger: 'manual',
          status: 'pending',
        });
      }
    }
    await record('l-gone', at + 500);
    await api.call('DELETE', '/api/v1/schedules/l-gone');
  });

  const all = async (path: string, limit: number) => {
    const runs: Json[] = [];
    let pages = 0;
    for (let cursor: unknown = ''; cursor !== null; pages += 1) {
      const page = await api.call(
        'GET',
        `${path}limit=${limit}${cursor === '' ? '' : `&cursor=${textOf(cursor)}`}`,
      );
      expect(page.status).toBe(200);
      runs.push(...items(page));
      cursor = page.body['nextCursor'];
    }
    return { runs, pages };
  };

  test.each([
    ['/api/v1/runs?from=2026-06-01T00:00:00Z&to=2026-06-02T00:00:00Z&', 21],
    ['/api/v1/runs?scheduleId=l-a&', 16],
    ['/api/v1/schedules/l-a/runs?', 16],
  ])('%s comes newest first, page by page, though many have the same moment', async (path, count) => {
    const { runs, pages } = await all(path, 3);
    expect(pages).toBe(Math.ceil(count / 3));
    expect(runs).toHaveLength(count);
    const keys = runs.map((run) => `${textOf(run['scheduledFor'])} ${textOf(run['id'])}`);
    expect(keys).toEqual([...new Set(keys)].sort().reverse());
    expect((await all(path, 500)).runs).toEqual(runs);
  });

  test('filter by status, trigger and period', async () => {
    const count = async (query: string) =>
      items(await api.call('GET', `/api/v1/schedules/l-b/runs?${query}`)).length;
    expect(await count('')).toBe(4);
    expect(await count('status=failed')).toBe(2);
    expect(await count('status=failed,succeeded')).toBe(4);
    expect(await count('status=failed,failed')).toBe(2);
    expect(await count('trigger=catchUp')).toBe(1);
    expect(await count('trigger=manual,api')).toBe(0);
    expect(await count('from=2026-06-01T00:00:01Z')).toBe(3);
    expect(await count('to=2026-06-01T00:00:01Z')).toBe(1);
    expect(await count('from=2026-06-01T02:00:01.000%2B02:00&to=2026-06-01T02:00:03 02:00')).toBe(2);
    expect(await count('from=2026-06-01T02:00:01+02:00')).toBe(3);
  });

  test('find deleted schedules, and no unknown ones', async () => {
    expect(items(await api.call('GET', '/api/v1/schedules/l-gone/runs'))).toHaveLength(1);
    expect(items(await api.call('GET', '/api/v1/runs?scheduleId=l-gone'))).toHaveLength(1);
    expect((await api.call('GET', '/api/v1/schedules/never-was/runs')).status).toBe(404);
    expect(items(await api.call('GET', '/api/v1/runs?scheduleId=never-was'))).toEqual([]);
  });

  test.each([
    ['from=2026-06-01', ['from']],
    ['from=2026-06-01T00:00:00', ['from']],
    ['from=2026-02-30T00:00:00Z', ['from']],
    ['from=2026-13-01T00:00:00Z', ['from']],
    ['from=2026-06-01T24:00:00Z', ['from']],
    ['from=2026-06-01T00:00:60Z', ['from']],
    ['from=1999-12-31T23:59:59Z', ['from']],
    ['to=2100-01-01T00:00:00.001Z', ['to']],
    ['to=%2B275760-09-13T00:00:00Z', ['to']],
    ['from=now', ['from']],
    ['from=', ['from']],
    ['from=2026-06-02T00:00:00Z&to=2026-06-01T00:00:00Z', ['to']],
    ['from=2026-06-01T00:00:00Z&to=2026-06-01T00:00:00Z', ['to']],
    ['status=done', ['status']],
    ['trigger=cron', ['trigger']],
    ['cursor=x', ['cursor']],
    ['cursor=eyJzY2hlZHVsZWRGb3IiOjFlOTksImlkIjoieCJ9', ['cursor']],
    ['limit=0&status=x&from=y&nope=z', ['from', 'limit', 'nope', 'status']],
  ])('refuse ?%s', async (query, paths) => {
    for (const path of ['/api/v1/runs', '/api/v1/schedules/l-a/runs']) {
      const answer = await api.call('GET', `${path}?${query}`);
      expect([answer.status, faultPaths(answer)]).toEqual([400, paths]);
    }
  });

  test('refuse a malformed scheduleId', async () => {
    expect(faultPaths(await api.call('GET', '/api/v1/runs?scheduleId=a/b'))).toEqual(['scheduleId']);
  });
});

test('instances are listed with where they listen: silent ones as not alive, and those that left in good order as left', async () => {
  const now = Date.parse(String((await api.sql`SELECT clock_timestamp()::text AS now`)[0]?.['now']));
  for (const [host, age] of [
    ['living', 0],
    ['silent', 3_600_000],
    ['left', 7_200_000],
    ['forgotten', 90_000_000],
  ] as const) {
    await api.sql`INSERT INTO instances ${api.sql({
      id: randomUUID(),
      host,
      port: host === 'silent' ? null : 8080,
      version: '0.1.0',
      zone_data: '2026c',
      started_at: isoInstant(now - age - 1000),
      heartbeat_at: isoInstant(now - age),
    })}`;
  }
  await api.sql`UPDATE instances SET died_at = heartbeat_at, left_at = heartbeat_at WHERE host = 'left'`;
  const answer = await api.call('GET', '/api/v1/instances');
  expect(items(answer)).toMatchObject([
    { host: 'living', port: 8080, alive: true, leftAt: null, inFlight: 0, zoneData: '2026c' },
    { host: 'silent', port: null, alive: false, leftAt: null, inFlight: 0, zoneData: '2026c' },
    { host: 'left', port: 8080, alive: false, leftAt: expect.any(String) as string },
  ]);
});
