import { beforeAll, describe, expect, test } from 'vitest';
import { type Answer, TARGET, faultPaths, sharedApi } from '../api.ts';

const api = sharedApi();
// 25 December 2026 is a Friday; 1 January 2027 too.
const HOLIDAYS = ['2026-12-24/2026-12-26', '2027-01-01'];
beforeAll(async () => {
  await api.call('PUT', '/api/v1/calendars/us-holidays', { dates: ['2030-12-25', '2031-01-01'] });
  await api.call('PUT', '/api/v1/calendars/may', { dates: ['2031-05-01', '2031-05-29'] });
});

const put = (id: string, body: object) => api.call('PUT', `/api/v1/schedules/${id}`, { target: TARGET, ...body });
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
    expect(firesOf(await get('moving/upcoming?count=3'))).toEqual(['2030-12-18T09', '2030-12-26T09', '2031-01-02T09']);
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

  test('exclude weekdays of intervals too', async () => {
    const often = { everySeconds: 43_200, startAt: '2031-05-02T12:00:00Z', exclude: { weekdays: WEEKEND } };
    await put('often', often);
    expect(firesOf(await get('often/upcoming?count=3'))).toEqual(['2031-05-02T12', '2031-05-05T00', '2031-05-05T12']);
  });

  test('are backfilled by: moved fires on the days where they were made', async () => {
    const exclude = { dates: ['2026-01-07', '2026-01-14'], weekdays: WEEKEND };
    await put('past', { cron: '0 12 * * WED', exclude, onExcluded: 'next' });
    const period = { from: '2026-01-01T00:00:00Z', to: '2026-01-20T00:00:00Z' };
    const answer = await api.call('POST', '/api/v1/schedules/past/backfill', period);
    expect(answer.body).toEqual({ created: 2, existing: 0, remainingFrom: null });
    const runs = await get('past/runs');
    expect((runs.body['items'] as unknown as { scheduledFor: string }[]).map((run) => run.scheduledFor)).toEqual([
      '2026-01-15T12:00:00.000Z',
      '2026-01-08T12:00:00.000Z',
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
      faultPaths(await put('wrong', { ...wrong, pick: { of: 'week', nth: [] }, every: null, onExcluded: null })),
    ).toEqual(['/exclude/weekdays', '/onExcluded', '/pick/nth']);
    for (const from of ['2027-01-04/2027-01-05', 'x', '1999-01-01'])
      expect(faultPaths(await put('wrong', { ...FORTNIGHT, every: { ...FORTNIGHT.every, from } }))).toEqual([
        '/every/from',
      ]);
  });

  test.each([
    [{ everySeconds: 60, every: FORTNIGHT.every }, ['/every']],
    [{ at: '2031-01-01T00:00:00Z', pick: LAST_WORKING_DAY.pick, onExcluded: 'next' }, ['/onExcluded', '/pick']],
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
    [{ cron: '0 9 * * *', exclude: { weekdays: ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] } }, '/exclude'],
    [{ cron: '0 9 * * *', exclude: { dates: ['2000-01-01/2100-12-31'] }, onExcluded: 'next' }, '/exclude'],
    [{ cron: '0 9 * * MON', exclude: { weekdays: ['mon'] }, pick: { of: 'year', nth: [1] } }, '/exclude'],
  ])('that leave no day are 422: %j', async (body, path) => {
    for (const answer of [await put('wrong', body), await preview(body)])
      expect([answer.status, faultPaths(answer)]).toEqual([422, [path]]);
  });
});

describe('excluded days', () => {
  const previewMay = (body: object) => preview({ from: '2031-04-29T00:00:00Z', count: 10, ...body });
  const DAILY = { cron: '0 9 * * *', timezone: 'Europe/Berlin', startAt: '2031-04-30T00:00:00Z' };
  const MAY = { dates: ['2031-05-02/2031-05-04'], calendars: ['may'], weekdays: [] };

  test('is answered as it was sent, merged by a patch, and null where it excludes nothing', async () => {
    const made = await put('kept-too', { ...DAILY, exclude: MAY });
    expect([made.status, made.body['exclude']]).toEqual([201, MAY]);
    expect((await put('kept-too', made.body)).body['version']).toBe(1);
    const merged = await patch('kept-too', { exclude: { dates: ['2031-05-10'] } });
    expect(merged.body['exclude']).toEqual({ ...MAY, dates: ['2031-05-10'] });
    const emptied = await patch('kept-too', { exclude: { dates: null, calendars: [] } });
    expect(emptied.body['exclude']).toBeNull();
    expect((await put('empty', { ...DAILY, exclude: {} })).body['exclude']).toBeNull();
    expect((await patch('kept-too', { exclude: { calendars: ['may'] } })).body['exclude']).toEqual({
      ...{ dates: [], calendars: ['may'], weekdays: [] },
    });
    const versions = await api.call('GET', '/api/v1/schedules/kept-too/versions');
    expect(versions.body['items']).toMatchObject([
      { schedule: { exclude: { dates: [], calendars: ['may'] } } },
      { schedule: { exclude: null } },
      { schedule: { exclude: { dates: ['2031-05-10'] } } },
      { schedule: { exclude: MAY } },
    ]);
  });

  test('keeps every kind that has fire times from firing on these days of its zone', async () => {
    const cron = await put('cron', { ...DAILY, exclude: MAY });
    expect(cron.body['nextFireAt']).toBe('2031-04-30T07:00:00.000Z');
    const upcoming = await api.call('GET', '/api/v1/schedules/cron/upcoming?count=3');
    expect(firesOf(upcoming)).toEqual(['2031-04-30T07', '2031-05-05T07', '2031-05-06T07']);
    const interval = { everySeconds: 43_200, startAt: '2031-04-30T23:00:00Z', timezone: 'Europe/Berlin' };
    // One in the morning, and in the afternoon, of Berlin.
    const every = await put('every', { ...interval, exclude: { dates: ['2031-05-01'] } });
    expect(every.body['nextFireAt']).toBe('2031-05-01T23:00:00.000Z');
    expect((await patch('every', { timezone: null })).body['nextFireAt']).toBe('2031-04-30T23:00:00.000Z');
    const once = { at: '2031-04-30T23:00:00Z', exclude: { calendars: ['may'] } };
    expect((await put('once', once)).status).toBe(201);
    expect(errors(await put('once', { ...once, timezone: 'Europe/Berlin' }))).toEqual([
      422,
      [{ path: '/exclude', message: 'excludes its only fire, by may' }],
    ]);
  });

  test('appears in occurrences, in the load, and in a preview', async () => {
    await put('seen', { ...DAILY, exclude: MAY });
    const period = 'from=2031-04-30T00:00:00Z&to=2031-05-06T00:00:00Z';
    const occurrences = await api.call('GET', `/api/v1/schedules/seen/occurrences?${period}`);
    const items = occurrences.body['items'] as unknown as { state: string; reason?: string }[];
    expect(items.map(({ state, reason }) => [state, reason])).toEqual([
      ['upcoming', undefined],
      ['excluded', 'may'],
      ['excluded', '2031-05-02/2031-05-04'],
      ['excluded', '2031-05-02/2031-05-04'],
      ['excluded', '2031-05-02/2031-05-04'],
      ['upcoming', undefined],
    ]);
    const minute = 'from=2031-05-01T07:00:00Z&to=2031-05-01T07:01:00Z';
    const load = async (when: string) => (await api.call('GET', `/api/v1/load?${when}`)).body['items'];
    const [onHoliday, before] = [await load(minute), await load(minute.replaceAll('05-01', '04-30'))];
    await patch('seen', { exclude: null });
    expect(JSON.stringify(await load(minute))).not.toBe(JSON.stringify(onHoliday));
    expect(JSON.stringify(await load(minute.replaceAll('05-01', '04-30')))).toBe(JSON.stringify(before));
    const { cron, timezone } = DAILY;
    const seen = await previewMay({ cron, timezone, exclude: MAY, count: 3 });
    expect(firesOf(seen)).toEqual(['2031-04-29T07', '2031-04-30T07', '2031-05-05T07']);
  });

  test('is refused with every fault at once', async () => {
    const dates = ['2031-02-29', '2031-05-02/2031-05-01', 'x', '2031-05-01/2031-05-01'];
    const wrong = { dates, calendars: ['a b', 7], days: [] };
    const answer = await put('wrong-too', { ...DAILY, exclude: wrong, overlap: 'never' });
    expect(answer.status).toBe(400);
    const paths = ['/exclude/calendars/0', '/exclude/calendars/1', '/exclude/dates/0', '/exclude/dates/1'];
    expect(faultPaths(answer)).toEqual([...paths, '/exclude/dates/2', '/exclude/days', '/overlap']);
    const patched = await patch('kept-too', { exclude: { dates: ['x'] }, labels: 5 });
    expect(faultPaths(patched)).toEqual(['/exclude/dates/0', '/labels']);
    const many = Array.from({ length: 17 }, (_, index) => `c${index}`);
    expect(faultPaths(await put('wrong-too', { ...DAILY, exclude: { calendars: many } }))).toEqual([
      '/exclude/calendars',
    ]);
    expect(faultPaths(await put('wrong-too', { ...DAILY, exclude: { calendars: ['may', 'may'] } }))).toEqual([
      '/exclude/calendars',
    ]);
    const after = await put('wrong-too', { after: { scheduleId: '*' }, exclude: { dates: ['2031-05-01'] } });
    expect(errors(after)).toEqual([
      400,
      [
        {
          path: '/exclude',
          message: 'cannot be combined with after: the schedule has no fire times of its own',
        },
      ],
    ]);
    expect((await put('follower', { after: { scheduleId: '*' }, exclude: null })).status).toBe(201);
  });

  test('is 422 with an unknown calendar, or if no fire is left', async () => {
    const exclude = { dates: [], calendars: ['may', 'june', 'july'] };
    const unknown = [
      { path: '/exclude/calendars/1', message: 'names a calendar that does not exist: june' },
      { path: '/exclude/calendars/2', message: 'names a calendar that does not exist: july' },
    ];
    expect(errors(await put('wrong-too', { ...DAILY, exclude }))).toEqual([422, unknown]);
    expect(errors(await patch('kept-too', { exclude }))).toEqual([422, unknown]);
    expect(errors(await previewMay({ cron: '0 9 * * *', exclude }))).toEqual([422, unknown]);
    const items = [
      { id: 'fine', target: TARGET, ...DAILY },
      { id: 'wrong-too', target: TARGET, ...DAILY, exclude },
    ];
    const batch = await api.call('POST', '/api/v1/schedules/batch', { items });
    const inItem = unknown.map(({ path, message }) => ({ path: `/items/1${path}`, message }));
    expect(errors(batch)).toEqual([422, inItem]);
    const nothing = [422, [{ path: '/exclude', message: 'excludes every fire' }]];
    const century = { dates: ['2026-01-01/2100-12-31'] };
    expect(errors(await put('wrong-too', { cron: '* * * * * *', exclude: century }))).toEqual(nothing);
    expect(errors(await put('wrong-too', { everySeconds: 1, exclude: century }))).toEqual(nothing);
    expect(errors(await previewMay({ cron: '* * * * * *', exclude: century }))).toEqual(nothing);
    const window = { startAt: '2031-05-01T00:00:00Z', endAt: '2031-05-02T00:00:00Z' };
    const inWindow = { cron: '0 9 * * *', ...window, exclude: { calendars: ['may'] } };
    expect(errors(await put('wrong-too', inWindow))).toEqual(nothing);
    expect(errors(await put('wrong-too', { cron: '0 0 31 2 *', exclude: century }))).toEqual([
      422,
      [{ path: '/cron', message: 'never fires' }],
    ]);
    expect((await api.call('GET', '/api/v1/schedules/wrong-too')).status).toBe(404);
  });

  test('takes 2,000 dates, also of several schedules at once', async () => {
    const first = Date.UTC(2031, 0, 1);
    const dates = Array.from({ length: 2000 }, (_, index) =>
      new Date(first + index * 2 * 86_400_000).toISOString().slice(0, 10),
    );
    const exclude = { dates, calendars: ['may'] };
    const made = await put('many', { ...DAILY, exclude });
    expect([made.status, made.body['nextFireAt']]).toEqual([201, '2031-04-30T07:00:00.000Z']);
    expect(faultPaths(await put('more', { ...DAILY, exclude: { dates: [...dates, '2031-01-01'] } }))).toEqual([
      '/exclude/dates',
    ]);
    const items = Array.from({ length: 3 }, (_, index) => ({
      id: `b${index}`,
      target: TARGET,
      ...DAILY,
      exclude,
    }));
    expect((await api.call('POST', '/api/v1/schedules/batch', { items })).body).toMatchObject({
      created: 3,
    });
  });
});

const DAY_MS = 86_400_000;
/** A zone in which it is about noon: no date ends meanwhile. */
const AWAY = 12 - new Date().getUTCHours();
const ZONE = `Etc/GMT${AWAY > 0 ? '-' : '+'}${Math.abs(AWAY)}`;
const dateIn = (days: number) => new Date(Date.now() + AWAY * 3_600_000 + days * DAY_MS).toISOString().slice(0, 10);
const at = (days: number, hour: number) =>
  new Date(Date.parse(`${dateIn(days)}T${String(hour).padStart(2, '0')}:00Z`) - AWAY * 3_600_000).toISOString();

/** A period to which tomorrow belongs as well. */
const PERIODS = {
  week: (date: string) => Math.floor((Date.parse(date) / DAY_MS + 3) / 7),
  month: (date: string) => date.slice(0, 7),
  year: (date: string) => date.slice(0, 4),
};
const OF = (['week', 'month', 'year'] as const).find((of) => PERIODS[of](dateIn(0)) === PERIODS[of](dateIn(1)));
const isIn = (days: number) => OF !== undefined && PERIODS[OF](dateIn(days)) === PERIODS[OF](dateIn(0));
const LAST =
  Array.from({ length: 400 }, (_, days) => days)
    .filter(isIn)
    .at(-1) ?? 0;
const REST = `${dateIn(1)}/${dateIn(LAST)}`;
const calendar = (id: string, ...dates: string[]) => api.call('PUT', `/api/v1/calendars/${id}`, { dates });
const nextOf = async (id: string) =>
  (await api.call('GET', `/api/v1/schedules/${id}`)).body['nextFireAt'] as unknown as string;
const runsOf = async (id: string) => {
  const { body } = await api.call('GET', `/api/v1/schedules/${id}/runs`);
  return (body['items'] as unknown as { scheduledFor: string; trigger: string }[]).map(({ scheduledFor, trigger }) => [
    scheduledFor,
    trigger,
  ]);
};

/** Excludes dates by an edit of the calendar, or of the definition. */
const EXCLUDING = {
  calendar: (id: string, ...dates: string[]) => calendar(id, ...dates),
  definition: (id: string, ...dates: string[]) => patch(id, { exclude: { dates, calendars: [id] } }),
};

describe.skipIf(OF === undefined).each(Object.entries(EXCLUDING))(
  'where an edit of the %s excludes the rest of a period, of which the last day is picked,',
  (kind, exclude) => {
    const picking = async (id: string, given: object) => {
      await calendar(id);
      const body = { timezone: ZONE, pick: { of: OF, nth: [-1] }, exclude: { calendars: [id] }, ...given };
      const made = await api.call('PUT', `/api/v1/schedules/${id}`, { target: TARGET, ...body });
      expect(made.status).toBe(201);
      return id;
    };

    test('today is made at once if its time has passed, and nothing more by an undo and by doing it again', async () => {
      const id = await picking(`passed-${kind}`, { cron: '0 1 * * *' });
      for (const dates of [[REST], [], [REST]]) await exclude(id, ...dates);
      expect(await runsOf(id)).toEqual([[at(0, 1), 'catchUp']]);
      expect(Date.parse(await nextOf(id))).toBeGreaterThan(Date.parse(at(LAST, 23)));
      const period = `from=${at(-1, 0)}&to=${at(1, 0)}`;
      const { body } = await api.call('GET', `/api/v1/schedules/${id}/occurrences?${period}`);
      expect(body['items']).toMatchObject([{ fireAt: at(0, 1), state: 'fired' }]);
    });
  },
);
