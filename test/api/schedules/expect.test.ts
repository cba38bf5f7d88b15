import { describe, expect, test } from 'vitest';
import { SCHEDULE, faultPaths, TARGET, quietApi } from '../api.ts';

const api = quietApi();
const pathOf = (id: string) => `/api/v1/schedules/${id}`;
const put = (id: string, more: object) => api.call('PUT', pathOf(id), { ...SCHEDULE, ...more });
const patch = (id: string, more: object) => api.call('PATCH', pathOf(id), more);
const BOTH = { startWithinSeconds: 60, finishWithinSeconds: 2_678_400 };

const NONE = { startWithinSeconds: null, finishWithinSeconds: null, atLeastSeconds: null, result: null };

describe('expect', () => {
  test('is answered with all bounds, some of which may be null', async () => {
    expect((await put('both', { expect: BOTH })).body).toMatchObject({ expect: BOTH });
    const { body } = await put('one', { expect: { finishWithinSeconds: 1 } });
    expect(body['expect']).toEqual({ ...NONE, finishWithinSeconds: 1 });
    expect((await api.call('GET', pathOf('one'))).body).toMatchObject({ expect: body['expect'] });
  });

  test('has what is expected of a result, whose numbers keep their digits; a patch replaces it as a whole', async () => {
    const text =
      '{"atLeastSeconds":5,"result":[{"pointer":"/rows","min":1,"max":1.5},{"pointer":"","equals":{"n":1.0,"big":12345678901234567890}},' +
      '{"pointer":"/x","equals":null}]}';
    const { status } = await api.call(
      'PUT',
      pathOf('result'),
      `{"cron":"0 12 29 2 *","target":${JSON.stringify(SCHEDULE.target)},"expect":${text}}`,
    );
    expect(status).toBe(201);
    const answered = `"finishWithinSeconds":null,${text.slice(1)}`;
    expect((await api.call('GET', pathOf('result'))).text).toContain(answered);
    await patch('result', { description: 'as before' });
    expect((await api.call('GET', pathOf('result'))).text).toContain(answered);
    const { body } = await patch('result', { expect: { result: [{ pointer: '/rows', min: 2 }] } });
    expect(body['expect']).toEqual({ ...NONE, atLeastSeconds: 5, result: [{ pointer: '/rows', min: 2 }] });
    expect((await patch('result', { expect: { result: null } })).body['expect']).toEqual({
      ...NONE,
      atLeastSeconds: 5,
    });
  });

  test('is merged by a patch, and removed by null', async () => {
    await put('patched', {});
    const steps = [
      [{ startWithinSeconds: 5 }, { startWithinSeconds: 5, finishWithinSeconds: null }],
      [{ finishWithinSeconds: 9 }, { startWithinSeconds: 5, finishWithinSeconds: 9 }],
      [{ startWithinSeconds: null }, { startWithinSeconds: null, finishWithinSeconds: 9 }],
      [null, null],
    ] as const;
    for (const [change, left] of steps)
      expect((await patch('patched', { expect: change })).body).toMatchObject({ expect: left });
  });

  test.for<[unknown, string[]]>([
    [{}, ['/expect']],
    [{ startWithinSeconds: null, finishWithinSeconds: null }, ['/expect']],
    [{ startWithinSeconds: 0 }, ['/expect/startWithinSeconds']],
    [{ finishWithinSeconds: 2_678_401 }, ['/expect/finishWithinSeconds']],
    [{ startWithinSeconds: 1.5 }, ['/expect/startWithinSeconds']],
    [60, ['/expect']],
    [{ atLeastSeconds: 0 }, ['/expect/atLeastSeconds']],
    [{ result: [] }, ['/expect/result']],
    [{ result: {} }, ['/expect/result']],
    [{ result: new Array(17).fill({ pointer: '', min: 1 }) }, ['/expect/result']],
    [
      {
        atLeastSeconds: 1.5,
        result: [{ pointer: 'rows', min: 1 }, { pointer: '/a' }, { pointer: '', min: '1' }],
      },
      ['/expect/atLeastSeconds', '/expect/result/0/pointer', '/expect/result/1', '/expect/result/2/min'],
    ],
    [
      {
        result: [
          { pointer: '', min: 2, max: 1 },
          { pointer: '', equal: 1 },
        ],
      },
      ['/expect/result/0/min', '/expect/result/1', '/expect/result/1/equal'],
    ],
  ])('%j is refused', async ([sent, paths]) => {
    const answer = await put('refused', { expect: sent });
    expect([answer.status, faultPaths(answer).sort()]).toEqual([400, paths]);
  });

  test('is null of a schedule that was written before there was such a field', async () => {
    await put('old', {});
    await api.sql`UPDATE schedule_versions SET definition = definition - 'expect' WHERE schedule_id = 'old'`;
    expect((await api.call('GET', pathOf('old'))).body).toMatchObject({ expect: null });
    const { body } = await api.call('GET', `${pathOf('old')}/versions`);
    expect(body['items']?.[0]).toMatchObject({ schedule: { expect: null } });
  });
});

describe('unmet', () => {
  const list = async (query: string) => {
    const { status, body } = await api.call('GET', `/api/v1/runs?${query}`);
    if (status !== 200) return status;
    return (body['items'] as unknown as { unmet: string[] }[]).map(({ unmet }) => unmet);
  };

  test('is answered, and filters open and ended runs, as the bulk actions do', async () => {
    await put('broken', { expect: BOTH });
    const fired = await Promise.all([1, 2, 3].map(() => api.call('POST', `${pathOf('broken')}/fire`)));
    const [open = '', ended = '', kept = ''] = fired.map(({ body }) => body['id'] as unknown as string);
    await api.sql`UPDATE runs SET bound_at = clock_timestamp() - interval '1 s' WHERE id = ${ended}`;
    await api.call('POST', `/api/v1/runs/${ended}/cancel`);
    await api.sql`UPDATE runs SET unmet = '{start,finish}' WHERE id = ${open}`;
    expect((await api.call('GET', `/api/v1/runs/${kept}`)).body).toMatchObject({ unmet: [] });
    expect((await api.call('GET', `/api/v1/runs/${ended}`)).body).toMatchObject({ unmet: ['start'] });
    expect(await list('unmet=start')).toHaveLength(2);
    expect(await list('unmet=finish')).toEqual([['start', 'finish']]);
    expect(await list('unmet=start,finish&scheduleId=broken&status=cancelled')).toEqual([['start']]);
    expect(await list('unmet=end')).toBe(400);
    const { body } = await api.call('POST', '/api/v1/runs/bulk', {
      ...{ action: 'cancel', dryRun: true },
      filter: { unmet: ['finish'] },
    });
    expect(body).toMatchObject({ matched: 1, sample: [open] });
  });
});

describe('the result that a worker reports', () => {
  const queued = (expect: object) => put('work', { target: { type: 'pull', queue: 'q' }, expect });
  /** Fires it, claims it, and completes it with that result. */
  async function completed(result: unknown, more: object = {}) {
    const { body } = await api.call('POST', `${pathOf('work')}/fire`);
    const id = body['id'] as unknown as string;
    await api.call('POST', '/api/v1/queues/q/claim', { workerId: 'w' });
    const word = { status: 'succeeded', workerId: 'w', result, ...more };
    const { body: run, status } = await api.call('POST', `/api/v1/runs/${id}/complete`, word);
    expect(status).toBe(200);
    return { status: run['status'], unmet: run['unmet'], unmetReason: run['unmetReason'] };
  }
  const kept = { status: 'succeeded', unmet: [], unmetReason: null };
  const broken = (unmetReason: string | null, unmet = ['result']) => ({
    status: 'succeeded',
    unmet,
    unmetReason,
  });

  test('is judged, as JSON, or by the last line of a text, in up to 64 KiB', async () => {
    await queued({ result: [{ pointer: '/rows', min: 1 }] });
    expect(await completed({ rows: 1 })).toEqual(kept);
    expect(await completed({ rows: 0 })).toEqual(broken('its result at "/rows" is less than 1'));
    expect(await completed('copied 3 tables\n{"rows":3}\n')).toEqual(kept);
    expect(await completed('copied 3 tables\n')).toEqual(broken('its result is no JSON'));
    expect(await completed({ x: 'x'.repeat(60_000), rows: 3 })).toEqual(kept);
    expect(await completed({ x: 'x'.repeat(70_000), rows: 3 })).toEqual(
      broken('its result is longer than 64 KiB, of which nothing is judged'),
    );
    expect(await completed(null)).toEqual(broken('there was no result'));
    expect(await completed(null, { status: 'failed' })).toMatchObject({ status: 'failed', unmet: [] });
  });

  test('of a run that is done too fast is no news: both are told', async () => {
    await queued({ atLeastSeconds: 3600, result: [{ pointer: '', equals: 'done' }] });
    expect(await completed('"done"')).toEqual(broken(null, ['tooFast']));
    expect(await completed('"failed"')).toEqual(broken('its result is not what is expected', ['tooFast', 'result']));
    expect((await api.call('GET', '/api/v1/runs?unmet=tooFast&scheduleId=work')).body['items']).toHaveLength(2);
    expect((await api.call('GET', '/api/v1/runs?unmet=result&scheduleId=work&limit=1')).body['items']).toMatchObject([
      { unmetReason: 'its result is not what is expected' },
    ]);
  });

  test('judges a run of unknown outcome that is reported as a success late, by the version that it has', async () => {
    await queued({ result: [{ pointer: '/rows', min: 1 }] });
    const { body } = await api.call('POST', `${pathOf('work')}/fire`);
    const id = body['id'] as unknown as string;
    await api.sql`WITH ended AS (DELETE FROM runs WHERE id = ${id} RETURNING *)
      INSERT INTO history (id, scheduled_for, schedule_uid, schedule_version, schedule_id, trigger, status, lane, priority, due_at, attempts,
        overlap_guarded, created_at, updated_at, finished_at, ended_at)
      SELECT id, scheduled_for, schedule_uid, schedule_version, schedule_id, trigger, 'unknown', lane, priority, due_at, 1,
        false, created_at, updated_at, now(), now() FROM ended`;
    await queued({ result: [{ pointer: '/rows', min: 100 }] });
    const word = { status: 'succeeded', result: { rows: 0 } };
    const { body: run } = await api.call('POST', `/api/v1/runs/${id}/complete`, word);
    expect(run).toMatchObject(broken('its result at "/rows" is less than 1'));
    expect((await api.call('POST', `/api/v1/runs/${id}/complete`, word)).body).toMatchObject({
      unmet: ['result'],
    });
  });
});

describe('expiresAfterSeconds', () => {
  const path = '/api/v1/schedules/brief';
  const HOUR = { expiresAfterSeconds: 3600 };

  test('a schedule answers its expiresAfterSeconds, keeps it through an edit, and loses it by null', async () => {
    const put = await api.call('PUT', path, { ...SCHEDULE, ...HOUR });
    expect([put.status, put.body['expiresAfterSeconds']]).toEqual([201, 3600]);
    const edited = await api.call('PATCH', path, { description: 'brief' });
    expect(edited.body).toMatchObject({ version: 2, ...HOUR });
    const back = await api.call('PUT', path, edited.body);
    expect([back.status, back.body['version']]).toEqual([200, 2]);
    const fired = await api.call('POST', `${path}/fire`);
    const { scheduledFor, expiresAt } = fired.body as unknown as Record<string, string>;
    expect(Date.parse(expiresAt ?? '') - Date.parse(scheduledFor ?? '')).toBe(3_600_000);
    const reset = await api.call('PATCH', path, { expiresAfterSeconds: null });
    expect(reset.body['expiresAfterSeconds']).toBeNull();
    expect((await api.call('POST', `${path}/fire`)).body['expiresAt']).toBeNull();
    const versions = await api.call('GET', `${path}/versions`);
    const [newest, oldest] = versions.body['items'] as unknown as { schedule: unknown }[];
    expect([newest?.schedule, oldest?.schedule]).toMatchObject([{ expiresAfterSeconds: null }, HOUR]);
  });

  test('a one-off run expires so long after its runAt, and another bound is another body of its key', async () => {
    const runAt = '2040-01-01T00:00:00.000Z';
    const body = { target: TARGET, key: 'once', runAt, ...HOUR };
    const accepted = await api.call('POST', '/api/v1/runs', body);
    expect([accepted.status, accepted.body['expiresAt']]).toEqual([201, '2040-01-01T01:00:00.000Z']);
    expect((await api.call('POST', '/api/v1/runs', body)).status).toBe(200);
    expect((await api.call('POST', '/api/v1/runs', { ...body, expiresAfterSeconds: 60 })).status).toBe(422);
  });

  test.each([0, 31 * 86_400 + 1, 1.5, '60'])('it is refused where it is %j', async (expiresAfterSeconds) => {
    const calls = [
      await api.call('PUT', path, { ...SCHEDULE, expiresAfterSeconds }),
      await api.call('PATCH', path, { expiresAfterSeconds }),
      await api.call('POST', '/api/v1/runs', { target: TARGET, expiresAfterSeconds }),
    ];
    for (const refused of calls) expect([refused.status, faultPaths(refused)]).toEqual([400, ['/expiresAfterSeconds']]);
  });
});
