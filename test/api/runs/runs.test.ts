import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, test, beforeEach } from 'vitest';
import { isoInstant } from '../../../src/core/instant.ts';
import { plannedRunId } from '../../../src/core/runs/run.ts';
import { insertRuns, changeRun } from '../../support/run-rows.ts';
import { type Json, ANSWERED_TARGET, SCHEDULE, faultPaths, TARGET, quietApi, idsOf, itemsOf } from '../api.ts';

const api = quietApi();

const put = (id: string) => api.call('PUT', `/api/v1/schedules/${id}`, { ...SCHEDULE, payload: { own: 1.5 } });
const fire = (id: string, body?: unknown, headers?: Record<string, string>) =>
  api.call('POST', `/api/v1/schedules/${id}/fire`, body, headers);
const textOf = (value: unknown) => value as string;

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
    const answers = await Promise.all(Array.from({ length: 8 }, () => fire('keyed', { payload: { n: 1 } }, key)));
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
      itemsOf(all)
        .map((run) => run['id'])
        .sort(),
    ).toEqual(fired.map((answer) => answer.body['id']).sort());
    const one = await api.call('GET', '/api/v1/runs?key=same-in-both&scheduleId=keyed-b');
    expect(itemsOf(one).map((run) => run['id'])).toEqual([fired[1]?.body['id']]);
    expect(itemsOf(await api.call('GET', '/api/v1/runs?key=never-used'))).toEqual([]);
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
      const page = await api.call('GET', `${path}limit=${limit}${cursor === '' ? '' : `&cursor=${textOf(cursor)}`}`);
      expect(page.status).toBe(200);
      runs.push(...itemsOf(page));
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
    const count = async (query: string) => itemsOf(await api.call('GET', `/api/v1/schedules/l-b/runs?${query}`)).length;
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
    expect(itemsOf(await api.call('GET', '/api/v1/schedules/l-gone/runs'))).toHaveLength(1);
    expect(itemsOf(await api.call('GET', '/api/v1/runs?scheduleId=l-gone'))).toHaveLength(1);
    expect((await api.call('GET', '/api/v1/schedules/never-was/runs')).status).toBe(404);
    expect(itemsOf(await api.call('GET', '/api/v1/runs?scheduleId=never-was'))).toEqual([]);
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
  expect(itemsOf(answer)).toMatchObject([
    { host: 'living', port: 8080, alive: true, leftAt: null, inFlight: 0, zoneData: '2026c' },
    { host: 'silent', port: null, alive: false, leftAt: null, inFlight: 0, zoneData: '2026c' },
    { host: 'left', port: 8080, alive: false, leftAt: expect.any(String) as string },
  ]);
});

describe('in bulk', () => {
  const bulk = (body: unknown) => api.call('POST', '/api/v1/runs/bulk', body);
  const put = (id: string, more: object = {}) => api.call('PUT', `/api/v1/schedules/${id}`, { ...SCHEDULE, ...more });
  const list = async (query: string) => idsOf(await api.call('GET', `/api/v1/runs?limit=500&${query}`));
  const statusOf = async (id: string | undefined) =>
    (await api.call('GET', `/api/v1/runs/${id ?? ''}`)).body['status'] as unknown as string;

  /** Runs of a schedule, the oldest first, in this status. */
  async function made(scheduleId: string, count: number, status: string, columns: object = {}): Promise<string[]> {
    const ids: string[] = [];
    for (let n = 0; n < count; n += 1) {
      const { body } = await api.call('POST', `/api/v1/schedules/${scheduleId}/fire`);
      const id = body['id'] as unknown as string;
      await changeRun(api.sql, id, { status, failures: 3, attempts: 3, ...columns });
      ids.push(id);
    }
    return ids.sort();
  }

  beforeEach(async () => {
    await api.sql`DELETE FROM runs`;
    await api.sql`DELETE FROM history`;
    await put('bill-1', { labels: { team: 'billing', tier: 'a:b' } });
    await put('bill-2', { labels: { team: 'billing' } });
    await put('ops', { labels: { team: 'ops', odd: '"\\{}' } });
  });

  test('a label in a list matches the present labels of the schedule; several must all match', async () => {
    const first = await made('bill-1', 2, 'failed');
    const second = await made('bill-2', 2, 'succeeded');
    const ops = await made('ops', 1, 'pending');
    await api.call('POST', '/api/v1/runs', { target: TARGET });
    const newest = (...ids: string[]) => ids.sort().reverse();
    expect(await list('label=team:billing')).toEqual(newest(...first, ...second));
    expect(await list('label=team:billing&status=failed')).toEqual(newest(...first));
    expect(await list('label=team:billing&label=tier:a:b')).toEqual(newest(...first));
    expect(await list('label=team:billing&label=team:ops')).toEqual([]);
    expect(await list('label=team:billing&scheduleId=bill-2')).toEqual(newest(...second));
    expect(await list('label=team:billing&scheduleId=ops')).toEqual([]);
    expect(await list(`label=${encodeURIComponent('odd:"\\{}')}`)).toEqual(ops);
    expect(await list('label=team:bill')).toEqual([]);
    await put('bill-2', { labels: { team: 'ops' } });
    expect(await list('label=team:ops')).toEqual(newest(...second, ...ops));
    await api.call('DELETE', '/api/v1/schedules/ops');
    expect(await list('label=team:ops')).toEqual(newest(...second));
    const page = await api.call('GET', '/api/v1/runs?label=team:billing&limit=1');
    const next = page.body['nextCursor'] as unknown as string;
    expect([...idsOf(page), ...(await list(`label=team:billing&cursor=${next}`))]).toEqual(newest(...first));
    expect(faultPaths(await api.call('GET', '/api/v1/runs?label=nocolon'))).toEqual(['label']);
  });

  test.each([
    [{}, ['/action', '/filter']],
    [{ action: 'retry', filter: {} }, ['/filter']],
    [{ action: 'retry', filter: { nope: 1 } }, ['/filter', '/filter/nope']],
    [{ action: 'complete', filter: { label: 'a:b' }, limit: 0 }, ['/action', '/limit']],
    [
      { action: 'retry', filter: { label: 'ab', status: 'happy', trigger: [], scheduleId: '/' } },
      ['/filter/label', '/filter/scheduleId', '/filter/status', '/filter/trigger'],
    ],
    [
      { action: 'retry', filter: { label: [], status: ['failed', 'x'], from: 'now' } },
      ['/filter/from', '/filter/label', '/filter/status'],
    ],
    [{ action: 'cancel', filter: { label: null, status: null } }, ['/filter/label', '/filter/status']],
    [{ action: 'cancel', filter: { from: '2026-11-20T00:00:00Z', to: '2026-11-20T00:00:00Z' } }, ['/filter/to']],
    [
      { action: 'cancel', filter: { scheduleId: 'a' }, limit: 10_001, dryRun: 'no', until: 1 },
      ['/dryRun', '/limit', '/until'],
    ],
  ])('refuses %j, and names each fault', async (body, paths) => {
    const answer = await bulk(body);
    expect([answer.status, faultPaths(answer)]).toEqual([400, paths]);
  });

  describe('retry', () => {
    test('opens all matching runs that can be retried, as if each had been named; a dry run only counts them', async () => {
      const failed = await made('bill-1', 3, 'failed');
      const skipped = await made('bill-2', 2, 'skipped', { reason: 'missed' });
      const others = [
        ...(await made('bill-1', 1, 'succeeded')),
        ...(await made('bill-1', 1, 'running')),
        ...(await made('ops', 1, 'failed')),
      ];
      const newest = [...failed, ...skipped].sort().reverse();
      const request = { action: 'retry', filter: { label: 'team:billing' } };
      const dry = await bulk({ ...request, dryRun: true });
      expect([dry.status, dry.body]).toEqual([200, { matched: 5, changed: 0, remaining: 5, sample: newest }]);
      expect(await list('status=pending')).toEqual([]);
      api.justWoken();
      await put('bill-2', { labels: { team: 'billing' }, priority: 'high' });
      const done = await bulk(request);
      expect(done.body).toEqual({ matched: 5, changed: 5, remaining: 0, sample: newest });
      expect(await list('status=pending')).toEqual(newest);
      expect(api.justWoken()).toMatchObject({ dispatch: 1, workers: 0 });
      const reopened = await api.call('GET', `/api/v1/runs/${skipped[0] ?? ''}`);
      expect(reopened.body).toMatchObject({ failures: 0, attempts: 3, reason: null, priority: 'high' });
      for (const id of others) expect(await statusOf(id)).not.toBe('pending');
      expect((await bulk(request)).body).toEqual({ matched: 0, changed: 0, remaining: 0, sample: [] });
    });

    test('takes statuses and triggers as in a query, or as lists, and a period', async () => {
      const failed = await made('bill-1', 2, 'failed');
      const [cancelled = ''] = await made('bill-1', 1, 'cancelled', { reason: 'request' });
      const matched = async (filter: object) => (await bulk({ action: 'retry', filter, dryRun: true })).body['matched'];
      expect(await matched({ status: 'failed,unknown' })).toBe(2);
      expect(await matched({ status: ['failed', 'cancelled'], trigger: ['manual'] })).toBe(3);
      expect(await matched({ status: 'succeeded,pending' })).toBe(0);
      expect(await matched({ trigger: 'schedule' })).toBe(0);
      expect(await matched({ scheduleId: 'nobody' })).toBe(0);
      expect(await matched({ label: ['team:billing', 'tier:a:b'], scheduleId: 'bill-1' })).toBe(3);
      const { body } = await api.call('GET', `/api/v1/runs/${cancelled}`);
      expect(await matched({ from: body['scheduledFor'] })).toBe(1);
      expect(await matched({ scheduleId: 'bill-1', to: body['scheduledFor'] })).toBe(failed.length);
    });

    test('leaves runs of a deleted schedule, which have no definition any more', async () => {
      await put('gone');
      const [gone] = await made('gone', 1, 'failed');
      const { body } = await api.call('POST', '/api/v1/runs', { target: TARGET });
      const oneOff = body['id'] as unknown as string;
      await changeRun(api.sql, oneOff, { status: 'failed' });
      await api.call('DELETE', '/api/v1/schedules/gone');
      const answer = await bulk({ action: 'retry', filter: { status: 'failed' } });
      expect(answer.body).toEqual({ matched: 1, changed: 1, remaining: 0, sample: [oneOff] });
      expect(await statusOf(gone)).toBe('failed');
    });

    test('acts on no more than `limit`, the newest first, and the next call goes on', async () => {
      const failed = await made('ops', 12, 'failed');
      const request = { action: 'retry', filter: { scheduleId: 'ops' }, limit: 5 };
      const newest = failed.toReversed();
      const answer = (await bulk(request)).body;
      expect(answer).toEqual({ matched: 12, changed: 5, remaining: 7, sample: newest.slice(0, 5) });
      expect(await list('status=failed')).toEqual(newest.slice(5));
      expect((await bulk({ ...request, dryRun: true })).body['sample']).toEqual(newest.slice(5));
      expect((await bulk({ ...request, limit: 7 })).body).toMatchObject({
        matched: 7,
        changed: 7,
        remaining: 0,
      });
    });

    test('does not wait for a run, or a schedule, that another transaction has locked: it remains', async () => {
      const [first = '', second = ''] = await made('bill-1', 2, 'failed');
      const ofLocked = await made('bill-2', 1, 'failed');
      const request = { action: 'retry', filter: { label: 'team:billing' } };
      const answer = await api.sql.begin(async (tx) => {
        await tx`SELECT FROM history WHERE id = ${first} FOR UPDATE`;
        await tx`SELECT FROM schedules WHERE id = 'bill-2' FOR UPDATE`;
        return bulk(request);
      });
      expect(answer.body).toMatchObject({ matched: 3, changed: 1, remaining: 2 });
      expect(await list('status=failed')).toEqual([first, ...ofLocked].sort().reverse());
      expect(await statusOf(second)).toBe('pending');
      expect((await bulk(request)).body).toMatchObject({ matched: 2, changed: 2, remaining: 0 });
    });

    test('one run that the database refuses remains, and the others are retried', async () => {
      const failed = await made('ops', 5, 'failed');
      const bad = failed[2] ?? '';
      await api.sql.unsafe(`ALTER TABLE runs ADD CONSTRAINT refused CHECK (id <> '${bad}')`);
      const answer = await bulk({ action: 'retry', filter: { label: 'team:ops' } });
      await api.sql`ALTER TABLE runs DROP CONSTRAINT refused`;
      expect(answer.body).toMatchObject({ matched: 5, changed: 4, remaining: 1 });
      expect(await list('status=failed')).toEqual([bad]);
    });
  });

  test('two calls at once act on each run once, and share the work', async () => {
    const items = Array.from({ length: 300 }, (_, n) => ({ ref: `r${n}`, target: TARGET }));
    await api.call('POST', '/api/v1/runs/batch', { items });
    const twice = async (action: string) => {
      const request = { action, filter: { trigger: 'api' } };
      const answers = await Promise.all([bulk(request), bulk(request)]);
      return answers.map(({ body }) => Number(body['changed'])).reduce((sum, changed) => sum + changed);
    };
    expect([await twice('cancel'), (await list('status=cancelled')).length]).toEqual([300, 300]);
    expect([await twice('retry'), (await list('status=pending')).length]).toEqual([300, 300]);
  });

  test('cancel ends what is open, tells targets of running runs, and leaves ended runs alone', async () => {
    const open = [
      ...(await made('bill-1', 2, 'pending')),
      ...(await made('bill-1', 1, 'waiting')),
      ...(await made('bill-2', 1, 'running')),
    ];
    await made('bill-1', 2, 'failed');
    const untouched = await made('ops', 1, 'pending');
    const request = { action: 'cancel', filter: { label: ['team:billing'] } };
    const running = (await list('status=running'))[0];
    expect((await bulk({ ...request, filter: { label: 'team:billing', status: 'failed' } })).body['matched']).toBe(0);
    expect((await bulk(request)).body).toMatchObject({ matched: 4, changed: 4, remaining: 0 });
    expect(await list('status=cancelled')).toEqual(open.sort().reverse());
    expect(await api.cancelled()).toEqual([running]);
    expect(await statusOf(untouched[0])).toBe('pending');
    expect((await api.call('GET', `/api/v1/runs/${open[0] ?? ''}`)).body['reason']).toBe('request');
  });
});
