import { describe, expect, onTestFinished, test } from 'vitest';
import { openDatabase } from '../../../src/postgres/database.ts';
import { createExpiry } from '../../../src/recovery/expiry.ts';
import { systemClock } from '../../../src/runtime/clock.ts';
import { createEventBus } from '../../../src/runtime/event-bus.ts';
import { createTargetRegistry } from '../../../src/targets/target.ts';
import { until } from '../../support/until.ts';
import { newToken } from '../access/support.ts';
import { type Answer, type Api, SCHEDULE, faultPaths, sharedApi, startApi } from '../api.ts';

let ahead = 0;
/** Limits of reports count by it, and it stands still between them. */
const clock = { ...systemClock, monotonic: () => ahead };
const api = sharedApi({ clock });
const BEAT = { target: null, observe: {}, successWithinSeconds: 3600 };
const RID = '0197b6de-0000-7000-8000-00000000abcd';

let made = 0;
/** A schedule that observes, and the key of its job. */
async function observed(definition: object = BEAT): Promise<{ id: string; key: string }> {
  const id = `seen-${(made += 1)}`;
  const put = await api.call('PUT', `/api/v1/schedules/${id}`, definition);
  expect([put.status, put.text]).toEqual([201, expect.any(String)]);
  ahead += 60_000;
  return { id, key: put.body['pingKey'] as unknown as string };
}

interface ShownRun extends Record<string, unknown> {
  status: string;
  trigger: string;
  scheduledFor: string;
}

/** Its runs, oldest first. */
async function runsOf(id: string): Promise<ShownRun[]> {
  const list = await api.call('GET', `/api/v1/schedules/${id}/runs`);
  return (list.body['items'] as unknown as ShownRun[]).toReversed();
}

const statusOf = ({ status }: Answer) => status;
const ping = (path: string, body?: unknown, method = body === undefined ? 'GET' : 'POST') => {
  ahead += 1_000;
  return api.call(method, path, body);
};
const EVERY = { ...SCHEDULE, cron: null, everySeconds: 3600, target: null, observe: { until: null } };

/** So many moments of the schedule, the last of them so long ago, as if nobody had planned them. */
async function makeDue(id: string, { moments = 1, secondsAgo = 10 } = {}): Promise<void> {
  await api.sql`UPDATE schedules SET created_at = at - interval '1 hour' * ${moments}::int, next_occurrence_at = at - interval '1 hour' * ${moments - 1}::int,
    next_fire_at = at - interval '1 hour' * ${moments - 1}::int
    FROM (SELECT date_trunc('second', clock_timestamp()) - make_interval(secs => ${secondsAgo}) AS at) AS moment WHERE id = ${id}`;
}

describe('a heartbeat', () => {
  test('takes what its job says by GET, HEAD and POST, each as a run of its own, and answers OK', async () => {
    const { id, key } = await observed();
    const got = await ping(`/ping/${key}`);
    expect([got.status, got.text, got.headers.get('content-type')]).toEqual([200, 'OK', 'text/plain; charset=utf-8']);
    expect((await ping(`/ping/${key}`, undefined, 'HEAD')).status).toBe(200);
    expect((await ping(`/ping/${key}/3`, 'disk full')).status).toBe(200);
    expect((await ping(`/ping/${key}/fail`)).status).toBe(200);
    const runs = await runsOf(id);
    expect(runs).toMatchObject([
      { status: 'succeeded', trigger: 'reported', observed: true, latenessMs: 0, error: null },
      { status: 'succeeded' },
      { status: 'failed', error: { kind: 'reported', message: 'disk full' } },
      { status: 'failed', error: { kind: 'reported', message: 'reported as failed' } },
    ]);
    const compared = await api.call('GET', `/api/v1/schedules/${id}/observed`);
    const lateness = { p50Ms: null, p95Ms: null, maxMs: null };
    expect(compared.body).toEqual({ expected: null, reported: 4, missed: 0, extra: 0, failed: 2, lateness });
    expect((await api.call('GET', `/api/v1/schedules/${id}`)).body).toMatchObject({
      status: 'active',
      nextFireAt: null,
    });
  });

  test('joins the reports of one execution by their rid, and the first word wins', async () => {
    const { id, key } = await observed();
    const rid = `rid=${RID.replaceAll('-', '').toUpperCase()}`;
    await ping(`/ping/${key}/start?${rid}`, 'begins');
    expect(await runsOf(id)).toMatchObject([{ status: 'running', executionId: RID, attempts: 1 }]);
    await ping(`/ping/${key}/start?${rid}`);
    await ping(`/ping/${key}/log?rid=${RID}`, 'half of it');
    expect(await runsOf(id)).toMatchObject([{ status: 'running', result: { body: 'half of it' } }]);
    await ping(`/ping/${key}/0?${rid}`);
    await ping(`/ping/${key}/1?${rid}`, 'no');
    expect(await runsOf(id)).toMatchObject([{ status: 'succeeded', result: { body: 'half of it' }, error: null }]);
    expect(await runsOf(id)).toHaveLength(1);
  });

  test('has no run for a text that belongs to none', async () => {
    const { id, key } = await observed();
    expect((await ping(`/ping/${key}/log`, 'alone')).status).toBe(200);
    expect(await runsOf(id)).toEqual([]);
  });

  test('takes the check-ins of Sentry, for the schedule that they name', async () => {
    const { id, key } = await observed();
    const at = `/api/77/cron/${id}/${key}/`;
    expect((await ping(`${at}?status=in_progress&check_in_id=${RID}&environment=live`)).text).toBe('OK');
    expect(await runsOf(id)).toMatchObject([{ status: 'running', executionId: RID }]);
    expect((await ping(`${at}?status=error&check_in_id=${RID}`)).status).toBe(200);
    expect(await runsOf(id)).toMatchObject([{ status: 'failed', error: { message: 'reported as failed' } }]);
    expect((await ping(`/api/77/cron/another/${key}/?status=ok`)).status).toBe(404);
    expect((await ping(`/api/7.5${at.slice('/api/77'.length)}?status=ok`)).status).toBe(404);
    expect((await ping(`${at}?status=ok`, undefined, 'DELETE')).status).toBe(405);
    expect(faultPaths(await ping(`${at}?status=done&check_in_id=7`))).toEqual(['check_in_id', 'status']);
  });

  test('keeps 4 KiB of a body of up to 100 KiB, of a failure too, whether its length is announced or not', async () => {
    const { id, key } = await observed();
    expect((await ping(`/ping/${key}`, 'x'.repeat(100 * 1024))).status).toBe(200);
    expect((await ping(`/ping/${key}/fail`, `${'é'.repeat(3000)}\0`)).status).toBe(200);
    expect((await ping(`/ping/${key}`, 'x'.repeat(100 * 1024 + 1))).status).toBe(413);
    const chunk = `8000\r\n${'x'.repeat(0x8000)}\r\n`;
    const chunked = `POST /ping/${key} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n`;
    expect(await api.raw(`${chunked}${chunk.repeat(4)}0\r\n\r\n`)).toMatch(/^HTTP\/1\.1 413 /);
    expect(await runsOf(id)).toMatchObject([
      { result: { body: 'x'.repeat(4096) } },
      { error: { message: 'é'.repeat(2048) } },
    ]);
  });

  test.each([
    ['?rid=7', 400],
    ['?rid=', 400],
    ['?create=1', 400],
    ['/256', 404],
    ['/stop', 404],
    ['/01', 404],
  ])('refuses what it does not know: %s', async (end, status) => {
    const { id, key } = await observed();
    expect((await ping(`/ping/${key}${end}`)).status).toBe(status);
    expect(await runsOf(id)).toEqual([]);
  });
});

describe('a schedule that observes', () => {
  test('records what is due before it matches: an end is for the oldest open moment', async () => {
    const { id, key } = await observed({ ...EVERY, catchUp: 'all', completionTimeoutSeconds: 86_400 });
    await makeDue(id, { moments: 3 });
    await ping(`/ping/${key}`);
    expect(await runsOf(id)).toMatchObject([
      { status: 'succeeded', trigger: 'catchUp', observed: true },
      { status: 'pending', trigger: 'catchUp', observed: true, nextAttemptAt: null },
      { status: 'pending', trigger: 'schedule', observed: true },
    ]);
    await ping(`/ping/${key}/start`);
    await ping(`/ping/${key}/start`);
    await ping(`/ping/${key}/fail`);
    expect((await runsOf(id)).map(({ status }) => status)).toEqual(['succeeded', 'failed', 'running']);
    const [first, , last] = await runsOf(id);
    expect(first?.['latenessMs']).toBeGreaterThanOrEqual(7_210_000);
    expect(last?.['latenessMs']).toBeLessThan(60_000);
  });

  test('makes the moment ahead at once where a report comes a minute early, and none for the moment itself', async () => {
    const { id, key } = await observed(EVERY);
    await makeDue(id, { secondsAgo: -50 });
    await ping(`/ping/${key}/start`);
    const [early] = await runsOf(id);
    expect(early).toMatchObject({
      status: 'running',
      trigger: 'schedule',
      name: `${id}@${early?.scheduledFor}`,
    });
    expect(early?.['latenessMs']).toBeLessThan(-30_000);
    const next = (await api.call('GET', `/api/v1/schedules/${id}`)).body['nextFireAt'] as unknown as string;
    expect(Date.parse(next) - Date.parse(early?.scheduledFor ?? '')).toBe(3_600_000);
    // No clock was ahead.
    expect((await api.call('GET', `/api/v1/schedules/${id}/occurrences`)).body).not.toHaveProperty('plannedThrough');
    await ping(`/ping/${key}`);
    expect(await runsOf(id)).toMatchObject([{ status: 'succeeded' }]);
    await ping(`/ping/${key}`);
    expect(await runsOf(id)).toMatchObject([{ trigger: 'reported', latenessMs: 0 }, { trigger: 'schedule' }]);
    const compared = await api.call('GET', `/api/v1/schedules/${id}/observed`);
    expect(compared.body).toMatchObject({ expected: 1, reported: 1, missed: 0, extra: 1, failed: 0 });
  });

  test('records what is due during maintenance as well, as far as it is observed, and leaves the rest to its end', async () => {
    const observe = { until: new Date(Date.now() - 1_800_000).toISOString() };
    const definition = { ...EVERY, observe, target: SCHEDULE.target, catchUp: 'all' };
    const { id, key } = await observed({ ...definition, completionTimeoutSeconds: 86_400 });
    await makeDue(id, { moments: 3 });
    for (const dispatch of ['continue', 'hold']) {
      await api.call('POST', '/api/v1/maintenance', { on: true, dispatch });
      expect((await ping(`/ping/${key}`)).status).toBe(200);
    }
    const runs = await runsOf(id);
    expect(runs.map(({ status, trigger, observed: isSeen }) => [status, trigger, isSeen])).toEqual([
      ['succeeded', 'catchUp', true],
      ['succeeded', 'catchUp', true],
    ]);
    // Of what is sent nothing is decided before the end.
    const left = (await api.call('GET', `/api/v1/schedules/${id}`)).body['nextFireAt'] as unknown as string;
    expect(Date.parse(left) - Date.parse(runs[1]?.scheduledFor ?? '')).toBe(3_600_000);
    await api.call('POST', '/api/v1/maintenance', { on: false });
    await ping(`/ping/${key}`);
    expect((await runsOf(id)).slice(2)).toMatchObject([
      { observed: false, scheduledFor: left, status: 'pending' },
      { observed: true, trigger: 'reported' },
    ]);
  });

  test('makes no moment ahead that an edit of its calendar has moved away since', async () => {
    await api.call('PUT', '/api/v1/calendars/closed', { dates: [] });
    const { id, key } = await observed({ ...EVERY, exclude: { calendars: ['closed'] } });
    await makeDue(id, { secondsAgo: -50 });
    const days = [0, 1].map((day) => new Date(Date.now() + day * 86_400_000).toISOString().slice(0, 10));
    await api.call('PUT', '/api/v1/calendars/closed', { dates: days });
    expect((await ping(`/ping/${key}`)).status).toBe(200);
    expect(await runsOf(id)).toMatchObject([{ status: 'succeeded', trigger: 'reported', latenessMs: 0 }]);
  });

  test('waits for its turn among the calls of others, and takes no connection that is left to workers', async () => {
    const { key } = await observed();
    api.poolsUsed.clear();
    await ping(`/ping/${key}`);
    expect([...api.poolsUsed]).toEqual(['calls']);
  });

  test('takes each report once, however many come at once', async () => {
    const { id, key } = await observed({ ...EVERY, catchUp: 'all', completionTimeoutSeconds: 86_400 });
    await makeDue(id, { moments: 4 });
    const all = await Promise.all([1, 2, 3, 4, 5].map(() => api.call('GET', `/ping/${key}`)));
    expect(all.map(statusOf)).toEqual([200, 200, 200, 200, 200]);
    const runs = await runsOf(id);
    expect(runs.map(({ status }) => status)).toEqual(new Array(5).fill('succeeded'));
    expect(runs.filter(({ trigger }) => trigger === 'reported')).toHaveLength(1);
  });

  test('is judged by what its runs are expected to be, but for how long one without a start took', async () => {
    const expected = { expect: { atLeastSeconds: 60, result: [{ pointer: '/rows', min: 1 }] } };
    const { id, key } = await observed({ ...BEAT, ...expected });
    await ping(`/ping/${key}`, '{"rows": 0}');
    await ping(`/ping/${key}/start`);
    await ping(`/ping/${key}`, '{"rows": 7}');
    expect(await runsOf(id)).toMatchObject([
      { status: 'succeeded', unmet: ['result'] },
      { status: 'succeeded', unmet: ['tooFast'] },
    ]);
  });

  test('completes and cancels by hand, retries and backfills nothing, and fires only with a target', async () => {
    const { id, key } = await observed({ ...EVERY, catchUp: 'all', completionTimeoutSeconds: 86_400 });
    await makeDue(id, { moments: 3 });
    await ping(`/ping/${key}`);
    const [, second, third] = await runsOf(id);
    const at = (run: ShownRun | undefined, act: string, body?: object) =>
      api.call('POST', `/api/v1/runs/${String(run?.['id'])}/${act}`, body);
    expect((await at(second, 'complete', { status: 'failed', error: 'seen', retry: true })).body).toMatchObject({
      status: 'failed',
      attempts: 1,
    });
    expect((await at(second, 'retry')).status).toBe(409);
    expect((await at(third, 'cancel')).body).toMatchObject({ status: 'cancelled' });
    expect((await at(third, 'retry')).status).toBe(409);
    const period = { from: '2026-01-01T00:00:00Z', to: '2026-01-02T00:00:00Z' };
    expect((await api.call('POST', `/api/v1/schedules/${id}/backfill`, period)).status).toBe(409);
    expect((await api.call('POST', `/api/v1/schedules/${id}/fire`)).status).toBe(409);
    await api.call('PATCH', `/api/v1/schedules/${id}`, { target: SCHEDULE.target });
    const fired = await api.call('POST', `/api/v1/schedules/${id}/fire`);
    expect([fired.status, fired.body['observed'], fired.body['status']]).toEqual([202, false, 'pending']);
  });
});

describe('two instances on one database', () => {
  /** Ends what is open as if nobody had reported. */
  async function expireAll(): Promise<void> {
    await api.sql`UPDATE runs SET expires_at = clock_timestamp() - interval '1 minute' WHERE observed`;
    const database = openDatabase(api.databaseUrl, 1);
    const wake = { effects: noop, dispatch: noop, workers: noop, admission: noop, alerts: noop };
    const loop = createExpiry({
      ...{ database, clock: systemClock, events: createEventBus(), wake },
      ...{ targets: createTargetRegistry([]), graceSeconds: 0 },
    });
    await loop.start();
    await until(async () => ((await api.sql`SELECT FROM runs WHERE observed`).length === 0 ? true : null));
    await loop.stop();
    await database.close();
  }

  const [A, B, C] = ['a', 'b', 'c'].map((digit) => RID.slice(0, -1) + digit);
  /** What each is, and how many seconds before the report its last moment was due, where moments are made before it. */
  const REPORTS: readonly { says: string; body?: string; due?: { moments: number; secondsAgo: number } }[] = [
    // Hours late, and twice.
    { says: `/start?rid=${A}`, due: { moments: 3, secondsAgo: 10 } },
    { says: `/start?rid=${A}` },
    // The end before its beginning.
    { says: `?rid=${B}`, body: 'all of it' },
    { says: `/start?rid=${B}` },
    { says: `/log?rid=${A}`, body: 'half of it' },
    { says: `/0?rid=${A}` },
    // Another end of what has ended.
    { says: `/7?rid=${A}` },
    { says: '/start' },
    { says: '/fail', body: 'disk full' },
    // Early by less than a minute, and what is beside all that.
    { says: `/start?rid=${C}`, due: { moments: 1, secondsAgo: -50 } },
    { says: '' },
    { says: '/log', body: 'of none' },
  ];

  async function reportAll(instances: readonly Api[]): Promise<{ id: string; key: string }> {
    const own = await observed({ ...EVERY, catchUp: 'all', completionTimeoutSeconds: 86_400 });
    for (const [index, { says, body, due }] of REPORTS.entries()) {
      if (due) await makeDue(own.id, due);
      ahead += 1_000;
      const instance = instances[index % instances.length];
      const answer = await instance?.call(body === undefined ? 'GET' : 'POST', `/ping/${own.key}${says}`, body);
      expect([says, answer?.status]).toEqual([says, 200]);
    }
    return own;
  }

  /** All that the reports decide of its runs. */
  async function decided(id: string): Promise<unknown[]> {
    const ids = (await runsOf(id)).map((run) => String(run['id']));
    const whole = await Promise.all(ids.map((run) => api.call('GET', `/api/v1/runs/${run}`)));
    return whole.map(({ body: { status, trigger, executionId, attempts, error, result, attemptLog, ...run } }) => ({
      ...{ status, trigger, executionId, attempts, error, result },
      late: Math.round(Number(run['latenessMs']) / 60_000),
      log: (attemptLog as unknown as { outcome: string }[]).map(({ outcome }) => outcome),
    }));
  }

  test('match late, early, repeated and disordered reports as one does, whichever takes which', async () => {
    const second = await startApi(api.databaseUrl, { clock });
    onTestFinished(() => second.stop());
    const alone = await reportAll([api]);
    const alternating = await reportAll([second, api]);
    await expireAll();
    // After it had expired.
    for (const [{ key }, instance] of [
      [alone, api],
      [alternating, second],
    ] as const) {
      ahead += 1_000;
      await instance.call('POST', `/ping/${key}/3?rid=${C}`, 'late');
    }
    const runs = await decided(alone.id);
    expect(await decided(alternating.id)).toEqual(runs);
    expect(runs).toMatchObject([
      { status: 'succeeded', executionId: A, late: 120, result: { body: 'half of it' } },
      { status: 'succeeded', executionId: B, late: 60, result: { body: 'all of it' } },
      { status: 'failed', executionId: null, error: { message: 'disk full' } },
      { status: 'succeeded', trigger: 'reported' },
      { status: 'failed', executionId: C, late: -1, error: { message: 'late' }, log: ['acceptedLate'] },
    ]);
  });
});

const noop = () => undefined;

describe('the key', () => {
  test('is shown with its schedule, to operators and admins in whose scope that is, and nowhere else', async () => {
    const { id, key } = await observed({ ...EVERY, catchUp: 'all' });
    await makeDue(id);
    await ping(`/ping/${key}/fail`, 'no');
    await api.call('POST', `/api/v1/schedules/${id}/ping-key`);
    const minted = await api.call('GET', `/api/v1/schedules/${id}`);
    const pingKey = minted.body['pingKey'] as unknown as string;
    const [run] = await runsOf(id);
    const callers = {
      ...{ viewer: newToken('viewer', 'viewer'), worker: newToken('worker', 'worker') },
      ...{ operator: newToken('operator', 'operator'), admin: newToken('admin', 'admin') },
      elsewhere: newToken('elsewhere', 'admin', null, ['elsewhere.']),
    };
    const apiTokens = Object.values(callers).map(({ known }) => known);
    const guarded = await startApi(api.databaseUrl, { clock, apiTokens });
    onTestFinished(() => guarded.stop());
    const { paths = {} } = (await api.call('GET', '/openapi.json')).body;
    const reading = Object.entries(paths).filter(([path, { get }]) => get !== undefined && path.startsWith('/api/v1/'));
    const period = 'from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z';
    const showing = async ({ headers }: { headers: Record<string, string> }) => {
      const found: string[] = [];
      for (const [path] of reading) {
        const at = path.replace('/runs/{id}', `/runs/${String(run?.['id'])}`).replace('{id}', id);
        const query = /load|occurrences/.test(path) ? `?${period}` : '';
        const { text } = await guarded.call('GET', `${at}${query}`, undefined, headers);
        if (text.includes(pingKey)) found.push(path);
      }
      return found;
    };
    expect(reading.length).toBeGreaterThan(25);
    const shown = ['/api/v1/schedules', '/api/v1/schedules/{id}'];
    expect({
      ...{ viewer: await showing(callers.viewer), worker: await showing(callers.worker) },
      ...{ operator: await showing(callers.operator), admin: await showing(callers.admin) },
      elsewhere: await showing(callers.elsewhere),
    }).toEqual({ viewer: [], worker: [], operator: shown, admin: shown, elsewhere: [] });
    const seen = await guarded.call('GET', `/api/v1/schedules/${id}`, undefined, callers.viewer.headers);
    expect(seen.body).toMatchObject({ id, pingKey: null });
    // What an edit would change, and what was done, say nothing of it.
    const items = [{ id, ...EVERY, catchUp: 'latest' }];
    for (const body of [{ items, dryRun: true }, { items }])
      expect((await api.call('POST', '/api/v1/schedules/batch', body)).text).not.toContain(pingKey);
  });

  test('has 22 characters, is replaced at once, ends with observe, and another one comes with it', async () => {
    const { id, key } = await observed();
    expect(key).toMatch(/^[\w-]{22}$/);
    expect((await api.call('GET', `/api/v1/schedules/${id}`)).body['pingKey']).toBe(key);
    const minted = await api.call('POST', `/api/v1/schedules/${id}/ping-key`);
    const second = minted.body['pingKey'] as unknown as string;
    expect([minted.status, (await ping(`/ping/${key}`)).status, (await ping(`/ping/${second}`)).status]).toEqual([
      200, 404, 200,
    ]);
    const audit = await api.call('GET', `/api/v1/audit?action=schedule.pingKey&scheduleId=${id}`);
    expect(audit.body['items']).toMatchObject([{ subject: id, outcome: 'done' }]);
    expect(audit.text).not.toContain(second);
    const versions = await api.call('GET', `/api/v1/schedules/${id}/versions`);
    expect(versions.text).not.toContain('pingKey');
    const stays = await api.call(
      'PUT',
      `/api/v1/schedules/${id}`,
      (await api.call('GET', `/api/v1/schedules/${id}`)).body,
    );
    expect(stays.body).toMatchObject({ version: 1, pingKey: second });
    await api.call('PATCH', `/api/v1/schedules/${id}`, {
      observe: null,
      target: SCHEDULE.target,
      cron: SCHEDULE.cron,
    });
    expect((await ping(`/ping/${second}`)).status).toBe(404);
    expect((await api.call('POST', `/api/v1/schedules/${id}/ping-key`)).status).toBe(409);
    const again = await api.call('PATCH', `/api/v1/schedules/${id}`, { observe: { until: null } });
    expect([key, second, null]).not.toContain(again.body['pingKey']);
  });

  test('is stored encrypted, and found by its hash', async () => {
    const { key } = await observed();
    const [row] = await api.sql`SELECT count(*)::int AS plain FROM ping_keys WHERE key::text LIKE ${`%${key}%`}`;
    const [sealed] = await api.sql`SELECT count(*)::int AS sealed FROM ping_keys WHERE key ? 'sealed'`;
    expect([row?.['plain'], sealed?.['sealed'] > 0]).toEqual([0, true]);
  });

  test('goes with its schedule', async () => {
    const { id, key } = await observed();
    await api.call('DELETE', `/api/v1/schedules/${id}`);
    expect((await ping(`/ping/${key}`)).status).toBe(404);
  });

  test('costs one statement where it is unknown, by an index, and none where it cannot be a key', async () => {
    const { key } = await observed();
    const asked = async (path: string) => {
      api.statements.length = 0;
      await ping(path);
      return [...api.statements];
    };
    expect(await asked(`/ping/${'u'.repeat(22)}/start`)).toEqual(['lockByPingKey']);
    expect(await asked(`/ping/${key}x`)).toEqual([]);
    expect(await asked(`/api/1/cron/another/${key}/?status=ok`)).toEqual(['lockByPingKey']);
    // A start and an end of an occurrence that is recorded: no day of history is read.
    const due = await observed({ ...EVERY, catchUp: 'all', completionTimeoutSeconds: 86_400 });
    await makeDue(due.id, { moments: 2 });
    await ping(`/ping/${due.key}`);
    const matched = ['lockByPingKey', 'openFor', 'lockIn'];
    expect(await asked(`/ping/${due.key}/start`)).toEqual([...matched, 'updateOpen']);
    expect(await asked(`/ping/${due.key}/0`)).toEqual([
      ...[...matched, 'successBoundsOf', 'deleteOpen', 'insertEnded', 'writeEffects'],
    ]);
    const plan = await api.sql.begin(async (sql) => {
      await sql`SET LOCAL enable_seqscan = off`;
      return sql`EXPLAIN SELECT FROM ping_keys k JOIN schedules s ON s.uid = k.schedule_uid WHERE k.key_hash = '\\x00'`;
    });
    expect(JSON.stringify(plan)).toMatch(/ping_keys_hash/);
    ahead += 120_000;
  });

  test('takes five reports a second, and an address twenty unknown ones a minute', async () => {
    const { key } = await observed();
    const many = [];
    for (let count = 0; count < 7; count += 1) many.push(await api.call('GET', `/ping/${key}`));
    expect(many.map(statusOf)).toEqual([200, 200, 200, 200, 200, 429, 429]);
    ahead += 120_000;
    const wrong = [];
    for (let count = 0; count < 21; count += 1)
      wrong.push(await api.call('GET', `/ping/${'w'.repeat(20)}${10 + count}`));
    expect(wrong.map(statusOf)).toEqual([...new Array<number>(20).fill(404), 429]);
    // What a stranger does behind the same address keeps no job from reporting that has reported here.
    expect((await ping(`/ping/${key}`)).status).toBe(200);
    const { key: unseen } = await observed();
    ahead -= 60_000;
    api.statements.length = 0;
    const refused = await api.call('GET', `/ping/${unseen}`);
    expect([refused.status, refused.headers.get('retry-after'), api.statements]).toEqual([429, '2', []]);
    ahead += 120_000;
  });
});

describe('what observes is refused', () => {
  const put = (definition: object) => api.call('PUT', '/api/v1/schedules/refused', definition);
  test.each([
    [{ ...BEAT, successWithinSeconds: undefined }, ['/successWithinSeconds']],
    [{ ...BEAT, observe: null }, ['/target', '/cron']],
    [{ ...BEAT, observe: { until: '2030-01-01T00:00:00Z' } }, ['/target', '/cron']],
    [{ ...EVERY, observe: { until: '2030-01-01T00:00:00Z' } }, ['/target']],
    [{ ...EVERY, observe: { since: 1 } }, ['/observe/since']],
    [{ ...EVERY, observe: { until: 'soon' } }, ['/observe/until', '/target']],
  ])('%j', async (definition, paths) => {
    const refused = await put(definition);
    expect([refused.status, faultPaths(refused).toSorted()]).toEqual([400, paths.toSorted()]);
  });
});
