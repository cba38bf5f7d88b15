import { describe, expect, test } from 'vitest';
import { type Answer, TARGET, sharedApi } from '../api.ts';

const api = sharedApi();

const at = (id: string) => `/api/v1/calendars/${id}`;
const put = (id: string, body: unknown, headers?: Record<string, string>) =>
  api.call('PUT', at(id), body, headers);
const putSchedule = (id: string, body: object) =>
  api.call('PUT', `/api/v1/schedules/${id}`, { target: TARGET, ...body });
const nextFireOf = async (id: string) =>
  (await api.call('GET', `/api/v1/schedules/${id}`)).body['nextFireAt'];
const detail = (answer: Answer) => [answer.status, answer.body['detail']];

describe('a calendar', () => {
  test('says which of its days are wrong, and why, and has two thousand at most', async () => {
    const answer = await put('wrong', { dates: ['2030-02-30', '2030-01-02/2030-01-01'] });
    expect([answer.status, answer.body['errors']]).toEqual([
      400,
      [
        { path: '/dates/0', message: 'names a day that does not exist: 2030-02-30' },
        {
          path: '/dates/1',
          message: 'ends before it begins: 2030-01-01 is earlier than 2030-01-02',
        },
      ],
    ]);
    const most = Array.from({ length: 2000 }, () => '2030-01-01');
    expect((await put('wrong', { dates: most })).status).toBe(201);
  });

  test('moves the next fires of the schedules that exclude it, and is not deleted while there are some', async () => {
    await put('used', { dates: ['2031-05-01'] });
    const daily = { cron: '0 9 * * *', timezone: 'Europe/Berlin', startAt: '2031-05-01T00:00:00Z' };
    await putSchedule('user', { ...daily, exclude: { calendars: ['used'] } });
    expect(await nextFireOf('user')).toBe('2031-05-02T07:00:00.000Z');
    const further = await put('used', { dates: ['2031-05-01/2031-05-03'] });
    expect(further.body['nextFiresMoved']).toBe(true);
    expect(await nextFireOf('user')).toBe('2031-05-04T07:00:00.000Z');
    await put('used', { dates: ['2031-05-02'] });
    expect(await nextFireOf('user')).toBe('2031-05-01T07:00:00.000Z');
    expect(detail(await api.call('DELETE', at('used')))).toEqual([
      409,
      'the calendar is named by schedules user',
    ]);
    const before = (await api.call('GET', '/api/v1/schedules/user')).body;
    await api.call('PATCH', '/api/v1/schedules/user', { exclude: null });
    expect((await api.call('DELETE', at('used'))).status).toBe(204);
    const gone = await api.call('PUT', '/api/v1/schedules/user', before);
    expect(gone.body['errors']).toEqual([
      { path: '/exclude/calendars/0', message: 'names a calendar that does not exist: used' },
    ]);
    expect(gone.status).toBe(422);
    // It has another uid, and the old one's links are gone.
    await put('used', { dates: [] });
    await putSchedule('second', { ...daily, exclude: { calendars: ['used'] } });
    expect((await api.call('DELETE', '/api/v1/schedules/second')).status).toBe(204);
    expect((await api.call('DELETE', at('used'))).status).toBe(204);
  });

  test('says nothing about the time before its last edit: earlier judgements stay', async () => {
    const made = await put('edited', { dates: ['2026-01-01/2029-12-31'] });
    const schedule = await putSchedule('judged', {
      everySeconds: 3600,
      startAt: '2026-01-01T00:00:00Z',
      exclude: { calendars: ['edited'] },
    });
    // As if both had been there for two days.
    await api.sql`UPDATE calendar_versions SET at = at - interval '2 days' WHERE calendar_id = 'edited'`;
    await api.sql`UPDATE schedule_versions SET at = at - interval '2 days' WHERE schedule_id = 'judged'`;
    const edit = await put('edited', { dates: [] });
    const created = Date.parse(made.body['updatedAt'] as unknown as string);
    const since = Date.parse(schedule.body['createdAt'] as unknown as string);
    const hour = (instant: number) => Math.floor(instant / 3_600_000);
    const edited = Date.parse(edit.body['updatedAt'] as unknown as string);
    const period = `from=${new Date(created - 3 * 86_400_000).toISOString()}&to=${new Date(edited + 86_400_000).toISOString()}`;
    const answer = await api.call('GET', `/api/v1/schedules/judged/occurrences?limit=500&${period}`);
    const items = answer.body['items'] as unknown as { fireAt: string; state: string; reason?: string }[];
    const states = items.map(({ fireAt, state, reason }) => [Date.parse(fireAt) <= edited, state, reason]);
    expect(new Set(states.map((one) => one.join(' ')))).toEqual(
      new Set(['true excluded edited', 'false upcoming ']),
    );
    expect(states.filter(([isBefore]) => isBefore)).toHaveLength(hour(edited) - hour(since - 2 * 86_400_000));
  });
});
