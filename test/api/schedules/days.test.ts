import { beforeAll, describe, expect, test } from 'vitest';
import { type Answer, TARGET, faultPaths, sharedApi } from '../api.ts';

const api = sharedApi();
// 25 December 2026 is a Friday; 1 January 2027 too.
const HOLIDAYS = ['2026-12-24/2026-12-26', '2027-01-01'];
beforeAll(async () => {
  await api.call('PUT', '/api/v1/calendars/us-holidays', { dates: ['2030-12-25', '2031-01-01'] });
});

const put = (id: string, body: object) =>
  api.call('PUT', `/api/v1/schedules/${id}`, { target: TARGET, ...body });
const patch = (id: string, body: object) => api.call('PATCH', `/api/v1/schedules/${id}`, body);
const get = (path: string) => api.call('GET', `/api/v1/schedules/${path}`);
const preview = (body: object) =>
  api.call('POST', '/api/v1/preview', { from: '2026-12-01T00:00:00Z', count: 4, ...body });
const itemsOf = ({ body }: Answer) =>
  body['items'] as unknown as {
    fireAt: string;
    note?: string;
    state?: string;
    movedFrom?: string;
    movedTo?: string;
  }[];
const firesOf = (answer: Answer) => itemsOf(answer).map(({ fireAt }) => fireAt.slice(0, 13));
const errors = ({ status, body }: Answer) => [status, body['errors']];

const WEEKEND = ['sat', 'sun'];
const LAST_WORKING_DAY = {
  cron: '0 9 * * *',
  exclude: { dates: HOLIDAYS, weekdays: WEEKEND },
  pick: { of: 'month', nth: [-1] },
};
const FORTNIGHT = { cron: '0 9 * * MON', every: { n: 2, unit: 'week', from: '2026-12-07' } };
const FRIDAYS = { cron: '0 9 * * FRI', exclude: { calendars: ['us-holidays'] } };

describe('rules of days', () => {
  test('are answered as they were sent, kept by what does not name them, and reset by null', async () => {
    const sent = {
      exclude: { dates: [], calendars: [], weekdays: WEEKEND },
      onExcluded: 'previous',
      ...FORTNIGHT,
    };
    const made = await put('kept', sent);
    expect([made.status, made.body]).toMatchObject([201, { ...sent, pick: null }]);
    expect((await put('kept', made.body)).body['version']).toBe(1);
    const merged = await patch('kept', { every: { n: 3 }, exclude: { weekdays: ['sun'] } });
    expect(merged.body).toMatchObject({
      every: { ...FORTNIGHT.every, n: 3 },
      exclude: { weekdays: ['sun'] },
    });
    const reset = await patch('kept', { every: null, onExcluded: null, exclude: { weekdays: null } });
    expect(reset.body).toMatchObject({ every: null, onExcluded: 'skip', exclude: null, version: 3 });
    const picking = await patch('kept', { pick: { of: 'quarter', nth: [1, -1] } });
    expect(picking.body['pick']).toEqual({ of: 'quarter', nth: [1, -1] });
    const { body } = await get('kept/versions');
    expect(body['items']).toMatchObject([{}, {}, { schedule: { every: { n: 3 } } }, { schedule: sent }]);
    expect(JSON.stringify(body)).not.toContain('since');
  });

  test('are shown by a preview: a working day of the month, a fortnight, and moved fires with where they come from', async () => {
    const working = await preview(LAST_WORKING_DAY);
    expect(firesOf(working)).toEqual(['2026-12-31T09', '2027-01-29T09', '2027-02-26T09', '2027-03-31T09']);
    expect(working.body['description']).toBe(
      'At 09:00, not on Saturdays and Sundays, only on the last such day of the month',
    );
    expect(firesOf(await preview(FORTNIGHT))).toEqual([
      '2026-12-07T09',
      '2026-12-21T09',
      '2027-01-04T09',
      '2027-01-18T09',
    ]);
    const moved = await preview({
      ...FRIDAYS,
      from: '2030-12-24T00:00:00Z',
      onExcluded: 'next',
      cron: '0 9 25 12 *',
      count: 1,
    });
    expect(itemsOf(moved)).toEqual([
      {
        fireAt: '2030-12-26T09:00:00.000Z',
        local: '2030-12-26T09:00:00.000Z',
        note: 'moved from 2030-12-25 (calendar us-holidays)',
      },
    ]);
    const notes = await preview({
      ...{ cron: '30 2 * * SAT', timezone: 'Europe/Berlin', from: '2027-03-22T00:00:00Z', count: 1 },
      ...{ exclude: { dates: ['2027-03-26/2027-03-27'] }, onExcluded: 'next' },
    });
    expect(itemsOf(notes)[0]).toMatchObject({
      fireAt: '2027-03-28T01:00:00.000Z',
      note: 'moved from 2027-03-27 (dates 2027-03-26/2027-03-27), moved by DST',
    });
  });

  test('hold for upcoming, occurrences, the load and what is skipped on request', async () => {
    const moving = {
      cron: '0 9 * * WED',
      exclude: { calendars: ['us-holidays'] },
      startAt: '2030-12-18T00:00:00Z',
    };
    const made = await put('moving', { ...moving, onExcluded: 'previous' });
    expect(made.body['nextFireAt']).toBe('2030-12-18T09:00:00.000Z');
    const upcoming = await get('moving/upcoming?count=4');
    // Two Wednesdays are holidays.
    expect(firesOf(upcoming)).toEqual(['2030-12-18T09', '2030-12-24T09', '2030-12-31T09', '2031-01-08T09']);
    expect(itemsOf(upcoming)[1]?.note).toBe('moved from 2030-12-25 (calendar us-holidays)');
    const period = 'from=2030-12-19T00:00:00Z&to=2031-01-03T00:00:00Z';
    expect(itemsOf(await get(`moving/occurrences?${period}`))).toMatchObject([
      { fireAt: '2030-12-24T09:00:00.000Z', state: 'upcoming', movedFrom: '2030-12-25' },
      { fireAt: '2030-12-25T09:00:00.000Z', state: 'excluded', reason: 'us-holidays', movedTo: '2030-12-24' },
      { fireAt: '2030-12-31T09:00:00.000Z', state: 'upcoming', movedFrom: '2031-01-01' },
      { fireAt: '2031-01-01T09:00:00.000Z', state: 'excluded', reason: 'us-holidays', movedTo: '2030-12-31' },
    ]);
    const load = await api.call('GET', '/api/v1/load?from=2030-12-24T09:00:00Z&to=2030-12-24T09:01:00Z');
    expect(load.body['items']).toEqual([{ at: '2030-12-24T09:00:00.000Z', fires: 1 }]);
    const skip = (fireAt: string) => api.call('POST', '/api/v1/schedules/moving/skip', { fireAt });
    expect((await skip('2030-12-24T09:00:00Z')).status).toBe(200);
    expect((await skip('2030-12-25T09:00:00Z')).status).toBe(422);
    expect(itemsOf(await get('moving/upcoming?count=2'))[1]).toMatchObject({ skipped: true });
    await patch('moving', { onExcluded: 'next' });
    expect(firesOf(await get('moving/upcoming?count=3'))).toEqual([
      '2030-12-18T09',
      '2030-12-26T09',
      '2031-01-02T09',
    ]);
  });

  test('say in occurrences where a fire comes from that an edit of the definition made at once', async () => {
    // A zone in which it is about noon: no date ends meanwhile.
    const away = 12 - new Date().getUTCHours();
    const timezone = `Etc/GMT${away > 0 ? '-' : '+'}${Math.abs(away)}`;
    const there = (at: number) => new Date(at + away * 3_600_000);
    const tomorrow = there(Date.now() + 86_400_000);
    const date = tomorrow.toISOString().slice(0, 10);
    const cron = `0 10 ${tomorrow.getUTCDate()} ${tomorrow.getUTCMonth() + 1} *`;
    await put('at-once', { cron, timezone });
    await patch('at-once', { exclude: { dates: [date] }, onExcluded: 'previous' });
    const period = [-1, 0].map((days) => new Date(Date.now() + days * 86_400_000).toISOString());
    const made = itemsOf(await get(`at-once/occurrences?from=${period[0]}&to=${period[1]}`));
    expect(made).toMatchObject([{ state: 'fired', movedFrom: date }]);
  });

  test('exclude weekdays of intervals and of expressions that follow real time too', async () => {
    const often = { everySeconds: 43_200, startAt: '2031-05-02T12:00:00Z', exclude: { weekdays: WEEKEND } };
    await put('often', often);
    expect(firesOf(await get('often/upcoming?count=3'))).toEqual([
      '2031-05-02T12',
      '2031-05-05T00',
      '2031-05-05T12',
    ]);
    const period = 'from=2031-05-03T00:00:00Z&to=2031-05-04T01:00:00Z';
    expect(itemsOf(await get(`often/occurrences?${period}`))).toMatchObject([
      { state: 'excluded', reason: 'sat' },
      { state: 'excluded', reason: 'sat' },
      { state: 'excluded', reason: 'sun' },
    ]);
    const hourly = {
      cron: '@hourly',
      exclude: { weekdays: WEEKEND },
      every: { n: 2, unit: 'week', from: '2031-04-28' },
    };
    const seen = await preview({ ...hourly, from: '2031-05-02T22:30:00Z', count: 2 });
    expect(firesOf(seen)).toEqual(['2031-05-02T23', '2031-05-12T00']);
    const never = {
      everySeconds: 60,
      exclude: { weekdays: ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] },
    };
    expect(errors(await put('never', never))).toEqual([
      422,
      [{ path: '/exclude', message: 'excludes every fire' }],
    ]);
  });

  test('are backfilled by: moved fires on the days where they were made', async () => {
    const exclude = { dates: ['2026-01-07', '2026-01-14'], weekdays: WEEKEND };
    await put('past', { cron: '0 12 * * WED', exclude, onExcluded: 'next' });
    const period = { from: '2026-01-01T00:00:00Z', to: '2026-01-20T00:00:00Z' };
    const answer = await api.call('POST', '/api/v1/schedules/past/backfill', period);
    expect(answer.body).toEqual({ created: 2, existing: 0, remainingFrom: null });
    const runs = await get('past/runs');
    expect(
      (runs.body['items'] as unknown as { scheduledFor: string }[]).map((run) => run.scheduledFor),
    ).toEqual(['2026-01-15T12:00:00.000Z', '2026-01-08T12:00:00.000Z']);
  });

  test('make coinciding fires one, and none outside of the window or further than 31 days', async () => {
    const from = '2026-12-20T00:00:00Z';
    const daily = { cron: '0 9 * * *', exclude: { dates: HOLIDAYS }, onExcluded: 'next', from, count: 6 };
    expect(firesOf(await preview(daily)).map((fire) => fire.slice(8))).toEqual([
      '20T09',
      '21T09',
      '22T09',
      '23T09',
      '27T09',
      '28T09',
    ]);
    const far = { cron: '0 9 1,30 11 *', exclude: { dates: ['2026-11-01/2026-12-10'] }, onExcluded: 'next' };
    const moved = await preview({ ...far, from: '2026-10-01T00:00:00Z', count: 2 });
    expect(firesOf(moved)).toEqual(['2026-12-11T09', '2027-11-01T09']);
    const window = { startAt: '2031-01-01T00:00:00Z', endAt: '2031-01-02T00:00:00Z' };
    const before = { cron: '0 9 1 1 *', exclude: { calendars: ['us-holidays'] }, ...window };
    expect(errors(await put('window', { ...before, onExcluded: 'previous' }))).toEqual([
      422,
      [{ path: '/exclude', message: 'excludes every fire' }],
    ]);
  });
});

describe('impossible rules of days', () => {
  test('are refused with every fault at once', async () => {
    const wrong = {
      cron: '0 9 * * *',
      exclude: { weekdays: ['sat', 'sat'] },
      onExcluded: 'later',
      every: { n: 1, unit: 'year', from: '2027-02-29', more: 1 },
      pick: { of: 'day', nth: [0, 1.5] },
    };
    const answer = await put('wrong', wrong);
    expect(answer.status).toBe(400);
    expect(faultPaths(answer)).toEqual(
      (
        '/every/from /every/more /every/n /every/unit /exclude/weekdays /onExcluded /pick/nth/0 ' +
        '/pick/nth/1 /pick/of'
      ).split(' '),
    );
    expect(
      faultPaths(
        await put('wrong', { ...wrong, pick: { of: 'week', nth: [] }, every: null, onExcluded: null }),
      ),
    ).toEqual(['/exclude/weekdays', '/onExcluded', '/pick/nth']);
    for (const from of ['2027-01-04/2027-01-05', 'x', '1999-01-01'])
      expect(faultPaths(await put('wrong', { ...FORTNIGHT, every: { ...FORTNIGHT.every, from } }))).toEqual([
        '/every/from',
      ]);
  });

  test.each([
    [{ everySeconds: 60, every: FORTNIGHT.every }, ['/every']],
    [
      { at: '2031-01-01T00:00:00Z', pick: LAST_WORKING_DAY.pick, onExcluded: 'next' },
      ['/onExcluded', '/pick'],
    ],
    [{ after: { scheduleId: '*' }, every: FORTNIGHT.every }, ['/every']],
    [{ ...LAST_WORKING_DAY, onExcluded: 'next' }, ['/onExcluded']],
    [{ cron: '*/5 * * * *', onExcluded: 'previous' }, ['/onExcluded']],
    [{ cron: ['0 9 * * *', '0 */1 * * MON'], onExcluded: 'next' }, ['/onExcluded']],
  ])('that have nothing to hold for are 400: %j', async (body, paths) => {
    const answer = await put('wrong', body);
    expect([answer.status, faultPaths(answer)]).toEqual([400, paths]);
    if (!('at' in body) && !('after' in body)) expect(faultPaths(await preview(body))).toEqual(paths);
  });

  test('are refused to a patch too, by what the schedule has already', async () => {
    await put('stored', { cron: '0 * * * *' });
    const faults = async (body: object) => {
      const answer = await patch('stored', body);
      return [answer.status, answer.status === 200 ? [] : faultPaths(answer)];
    };
    expect(await faults({ onExcluded: 'next' })).toEqual([400, ['/onExcluded']]);
    expect(await faults({ cron: '0 9 * * *', pick: { of: 'week', nth: [1] } })).toEqual([200, []]);
    expect(await faults({ onExcluded: 'next' })).toEqual([400, ['/onExcluded']]);
    expect(await faults({ everySeconds: 60 })).toEqual([400, ['/pick']]);
    expect(await faults({ everySeconds: 60, pick: null })).toEqual([200, []]);
  });

  test.each([
    [{ cron: '0 9 * * MON-FRI', pick: { of: 'week', nth: [6] } }, '/pick'],
    [{ cron: '0 9 29 2 *', every: { n: 12, unit: 'month', from: '2027-01-01' } }, '/every'],
    [
      { cron: '0 9 * * *', exclude: { weekdays: ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] } },
      '/exclude',
    ],
    [{ cron: '0 9 * * *', exclude: { dates: ['2000-01-01/2100-12-31'] }, onExcluded: 'next' }, '/exclude'],
    [{ cron: '0 9 * * MON', exclude: { weekdays: ['mon'] }, pick: { of: 'year', nth: [1] } }, '/exclude'],
  ])('that leave no day are 422: %j', async (body, path) => {
    for (const answer of [await put('wrong', body), await preview(body)])
      expect([answer.status, faultPaths(answer)]).toEqual([422, [path]]);
  });
});
