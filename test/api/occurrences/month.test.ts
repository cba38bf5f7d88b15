import { beforeAll, expect, test } from 'vitest';
import { type Answer, TARGET, sharedApi } from '../api.ts';

const api = sharedApi();

interface Day {
  date: string;
  verdict: string;
  fires: { fireAt: string; local: string; note?: string }[];
  [field: string]: unknown;
}

const preview = (body: object) => api.call('POST', '/api/v1/preview', { count: 1, ...body });
const daysOf = ({ body }: Answer) => body['days'] as unknown as Day[] | undefined;
const day = (answer: Answer, date: string) => daysOf(answer)?.find((one) => one.date === date);

const LAST_WORKING_DAY = {
  ...{ cron: '0 9 * * *', timezone: 'Europe/Berlin', pick: { of: 'month', nth: [-1] } },
  exclude: { weekdays: ['sat', 'sun'], calendars: ['month-holidays'] },
};
const MOVING = {
  ...{ cron: '0 9 * * FRI', timezone: 'Europe/Berlin', onExcluded: 'next' },
  exclude: { weekdays: ['sat', 'sun'], calendars: ['month-holidays'] },
};

beforeAll(() =>
  // 25 December 2030 is a Wednesday, 31 December a Tuesday.
  api.call('PUT', '/api/v1/calendars/month-holidays', { dates: ['2030-12-25', '2030-12-31'] }),
);

test('a preview with rules of days explains each day of the local month of from, also those before it', async () => {
  const answer = await preview({ ...LAST_WORKING_DAY, from: '2030-12-15T12:00:00Z' });
  expect(answer.status).toBe(200);
  expect(daysOf(answer)).toHaveLength(31);
  expect(day(answer, '2030-12-02')).toEqual({ date: '2030-12-02', verdict: 'notPicked', fires: [] });
  expect(day(answer, '2030-12-30')).toEqual({
    ...{ date: '2030-12-30', verdict: 'fires' },
    fires: [{ fireAt: '2030-12-30T08:00:00.000Z', local: '2030-12-30T09:00:00.000+01:00' }],
  });
  expect(day(answer, '2030-12-31')).toEqual({
    ...{ date: '2030-12-31', verdict: 'excluded', reason: 'calendar month-holidays', fires: [] },
  });
});

test('it says where fires are moved to and from', async () => {
  const answer = await preview({
    ...{ ...MOVING, cron: '0 9 * * WED' },
    from: '2030-12-01T00:00:00Z',
  });
  expect(day(answer, '2030-12-25')).toMatchObject({
    ...{ verdict: 'moved', reason: 'calendar month-holidays', movedTo: '2030-12-26' },
  });
  expect(day(answer, '2030-12-26')).toMatchObject({
    ...{ verdict: 'fires', movedFrom: ['2030-12-25'] },
    fires: [{ note: 'moved from 2030-12-25 (calendar month-holidays)' }],
  });
});

test('the month is that of the first moment after from, as clocks in the zone of the schedule show it', async () => {
  const monthAt = async (from: string, timezone: string) => {
    const answer = await preview({ ...LAST_WORKING_DAY, timezone, from });
    return daysOf(answer)?.[0]?.date;
  };
  expect(await monthAt('2030-12-31T23:59:59.999Z', 'UTC')).toBe('2031-01-01');
  expect(await monthAt('2030-12-31T22:30:00Z', 'Europe/Berlin')).toBe('2030-12-01');
  expect(await monthAt('2030-12-31T23:30:00Z', 'Europe/Berlin')).toBe('2031-01-01');
});

test('a schedule without rules of days, and an interval that has no beginning yet, have no month', async () => {
  expect(daysOf(await preview({ cron: '0 9 * * MON-FRI' }))).toBeUndefined();
  const exclude = { weekdays: ['sun'] };
  expect(daysOf(await preview({ everySeconds: 3600, exclude }))).toBeUndefined();
});

test('of a day with many fires only the first are listed, and it says that there are more', async () => {
  const answer = await preview({
    cron: '* * * * * *',
    exclude: { weekdays: ['sun'] },
    from: '2030-12-01T00:00:00Z',
  });
  expect(day(answer, '2030-12-02')).toMatchObject({ verdict: 'fires', more: true, fires: { length: 8 } });
  expect(JSON.stringify(answer.body).length).toBeLessThan(40_000);
});

test('a stored schedule explains its month too, with its beginning and its end', async () => {
  const bounds = { startAt: '2030-12-04T00:00:00Z', endAt: '2030-12-20T00:00:00Z' };
  await api.call('PUT', '/api/v1/schedules/month-moving', { target: TARGET, ...MOVING, ...bounds });
  await api.call('PUT', '/api/v1/schedules/month-plain', { target: TARGET, cron: '0 9 * * *' });
  const upcoming = (id: string) =>
    api.call('GET', `/api/v1/schedules/${id}/upcoming?count=1&from=2030-12-15T12:00:00Z`);
  const answer = await upcoming('month-moving');
  const verdicts = ['06', '07', '09', '27'].map((date) => day(answer, `2030-12-${date}`)?.verdict);
  expect(verdicts).toEqual(['fires', 'notSelected', 'notSelected', 'outside']);
  const interval = { everySeconds: 86_400, exclude: { weekdays: ['sun'] }, startAt: bounds.startAt };
  await api.call('PUT', '/api/v1/schedules/month-interval', { target: TARGET, ...interval });
  const ofInterval = await upcoming('month-interval');
  expect(['03', '04', '08'].map((date) => day(ofInterval, `2030-12-${date}`)?.verdict)).toEqual([
    ...['notSelected', 'fires', 'excluded'],
  ]);
  expect(daysOf(await upcoming('month-plain'))).toBeUndefined();
});

test('a month before a calendar was edited is judged by what it said then', async () => {
  await api.call('PUT', '/api/v1/calendars/month-edited', { dates: ['2025-12-24'] });
  await api.call('PUT', '/api/v1/calendars/month-edited', { dates: ['2025-12-23'] });
  await api.sql`UPDATE calendar_versions SET at = timestamptz '2025-12-30' - (2 - version) * interval '1 year'
    WHERE calendar_id = 'month-edited'`;
  const exclude = { calendars: ['month-edited'] };
  const answer = await preview({ cron: '0 9 * * *', exclude, from: '2025-12-31T12:00:00Z' });
  expect(day(answer, '2025-12-24')?.verdict).toBe('excluded');
  expect(day(answer, '2025-12-23')?.verdict).toBe('fires');
});
