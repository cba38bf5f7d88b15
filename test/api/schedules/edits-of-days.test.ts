import { describe, expect, test } from 'vitest';
import { TARGET, sharedApi } from '../api.ts';

const api = sharedApi();
const DAY_MS = 86_400_000;
/** A zone in which it is about noon: no date ends meanwhile. */
const AWAY = 12 - new Date().getUTCHours();
const ZONE = `Etc/GMT${AWAY > 0 ? '-' : '+'}${Math.abs(AWAY)}`;
const dateIn = (days: number) =>
  new Date(Date.now() + AWAY * 3_600_000 + days * DAY_MS).toISOString().slice(0, 10);
const at = (days: number, hour: number) =>
  new Date(
    Date.parse(`${dateIn(days)}T${String(hour).padStart(2, '0')}:00Z`) - AWAY * 3_600_000,
  ).toISOString();

/** A period to which tomorrow belongs as well. */
const PERIODS = {
  week: (date: string) => Math.floor((Date.parse(date) / DAY_MS + 3) / 7),
  month: (date: string) => date.slice(0, 7),
  year: (date: string) => date.slice(0, 4),
};
const OF = (['week', 'month', 'year'] as const).find(
  (of) => PERIODS[of](dateIn(0)) === PERIODS[of](dateIn(1)),
);
const isIn = (days: number) => OF !== undefined && PERIODS[OF](dateIn(days)) === PERIODS[OF](dateIn(0));
const LAST =
  Array.from({ length: 400 }, (_, days) => days)
    .filter(isIn)
    .at(-1) ?? 0;
const REST = `${dateIn(1)}/${dateIn(LAST)}`;

const patch = (id: string, body: object) => api.call('PATCH', `/api/v1/schedules/${id}`, body);
const calendar = (id: string, ...dates: string[]) => api.call('PUT', `/api/v1/calendars/${id}`, { dates });
const nextOf = async (id: string) =>
  (await api.call('GET', `/api/v1/schedules/${id}`)).body['nextFireAt'] as unknown as string;
const runsOf = async (id: string) => {
  const { body } = await api.call('GET', `/api/v1/schedules/${id}/runs`);
  return (body['items'] as unknown as { scheduledFor: string; trigger: string }[]).map(
    ({ scheduledFor, trigger }) => [scheduledFor, trigger],
  );
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

    test('today is made if its time lies ahead, and an undo before takes it back', async () => {
      const id = await picking(`ahead-${kind}`, { cron: '0 23 * * *' });
      expect(await nextOf(id)).toBe(at(LAST, 23));
      await exclude(id, REST);
      expect(await nextOf(id)).toBe(at(0, 23));
      // Nothing else is undone by it.
      await patch(id, { cron: '0 22 * * *' });
      expect(await nextOf(id)).toBe(at(0, 22));
      await exclude(id);
      expect(await nextOf(id)).toBe(at(LAST, 22));
      expect(await runsOf(id)).toEqual([]);
    });

    test('today is made at once if its time has passed, and nothing more by an undo and by doing it again', async () => {
      const id = await picking(`passed-${kind}`, { cron: '0 1 * * *' });
      for (const dates of [[REST], [], [REST]]) await exclude(id, ...dates);
      expect(await runsOf(id)).toEqual([[at(0, 1), 'catchUp']]);
      expect(Date.parse(await nextOf(id))).toBeGreaterThan(Date.parse(at(LAST, 23)));
      const period = `from=${at(-1, 0)}&to=${at(1, 0)}`;
      const { body } = await api.call('GET', `/api/v1/schedules/${id}/occurrences?${period}`);
      expect(body['items']).toMatchObject([{ fireAt: at(0, 1), state: 'fired' }]);
    });

    test('catchUp: skip leaves a run that says so', async () => {
      const id = await picking(`skip-${kind}`, { cron: '0 1 * * *', catchUp: 'skip' });
      await exclude(id, REST);
      const { body } = await api.call('GET', `/api/v1/schedules/${id}/runs`);
      expect(body['items']).toMatchObject([{ scheduledFor: at(0, 1), status: 'skipped', reason: 'missed' }]);
    });
  },
);

test.skipIf(OF === undefined)(
  'a patch to another pick leaves the fire of today, as an edit of the calendar does',
  async () => {
    await calendar('stays', REST);
    const body = { target: TARGET, timezone: ZONE, cron: '0 23 * * *', exclude: { calendars: ['stays'] } };
    await api.call('PUT', '/api/v1/schedules/stays', { ...body, pick: { of: OF, nth: [-1] } });
    expect(await nextOf('stays')).toBe(at(0, 23));
    await calendar('stays');
    expect(await nextOf('stays')).toBe(at(0, 23));
    await patch('stays', { pick: { of: OF, nth: [1] }, exclude: null });
    expect(await nextOf('stays')).toBe(at(0, 23));
    await patch('stays', { pick: null, cron: '0 22 * * *' });
    expect(await nextOf('stays')).toBe(at(0, 22));
  },
);
