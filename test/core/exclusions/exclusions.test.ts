import { describe, expect, it, test } from 'vitest';
import { cursorByCalendars } from '../../../src/core/time/cursors.ts';
import { type Calendars, daySetOfEntries } from '../../../src/core/exclusions/exclusion.ts';
import { daySetOf, hasDay, nextDayOutside, readDateEntry, unionOf } from '../../../src/core/exclusions/day-set.ts';
import type { Exclude } from '../../../src/core/timing/timing.ts';
import { readTiming, timingText } from '../../../src/core/schedules/stored-definition.ts';
import { dependsOnIdentity, fireTimes } from '../../../src/core/time/fire-times.ts';
import { createRandom } from '../../chaos/random.ts';
import { at, timingOf } from '../time/support.ts';

const iso = (instant: number | null) => (instant === null ? null : new Date(instant).toISOString().slice(0, 19));
const identity = { id: 'job', createdAt: at('2026-01-01T00:00:00Z') };
const excluding = (...dates: string[]): Exclude => ({ dates, calendars: [] });
const history = (id: string, ...versions: [version: number, at: string, ...dates: string[]][]): Calendars =>
  new Map([
    [
      id,
      {
        id,
        versions: versions.map(([version, from, ...dates]) => ({
          version,
          at: at(from),
          days: daySetOfEntries(dates),
        })),
      },
    ],
  ]);

test.each([
  ['2026-12-24', 'a day'],
  ['2028-02-29', 'a leap day'],
  ['2026-12-24/2027-01-02', 'a range'],
  ['2026-12-24/2026-12-24', 'a range of one day'],
])('%s is %s', (text) => {
  const [from = '', to = from] = text.split('/');
  const day = (date: string) => at(`${date}T00:00:00Z`) / 86_400_000;
  expect(readDateEntry(text)).toEqual({ first: day(from), last: day(to) });
});

test.each([
  '',
  '2026-1-1',
  '2026-12-24/',
  '2026-12-24/2026-12-25/2026-12-26',
  '24.12.2026',
  '2026-12-24T00:00:00Z',
  '2026-00-10',
  '2026-13-01',
  '2026-04-31',
  '2027-02-29',
  '2100-02-29',
  '2026-01-00',
  '1999-12-31',
  '2101-01-01',
  '2026-01-02/2026-01-01',
])('%j is no entry', (text) => {
  expect(typeof readDateEntry(text)).toBe('string');
});

test('a set of days has the days of its ranges and no others, alone and joined', () => {
  const random = createRandom(7, 'days');
  for (let round = 0; round < 50; round += 1) {
    const sets = [0, 1, 2].map(() =>
      Array.from({ length: Math.floor(random.between(0, 5)) }, () => {
        const first = Math.floor(random.between(-100, 300));
        return { first, last: first + Math.floor(random.between(0, random.chance(0.2) ? 150 : 4)) };
      }),
    );
    const isIn = (day: number) => sets.flat().some(({ first, last }) => first <= day && day <= last);
    const union = unionOf(sets.map(daySetOf));
    const days = Array.from({ length: 640 }, (_, index) => index - 140);
    const freeFrom = (day: number): number => (isIn(day) ? freeFrom(day + 1) : day);
    expect(days.map((day) => [hasDay(union, day), nextDayOutside(union, day)])).toEqual(
      days.map((day) => [isIn(day), freeFrom(day)]),
    );
  }
});

describe('fire times', () => {
  it('leave out the days of the zone, also where its midnight does not exist or comes twice', () => {
    const hourly = (timezone: string, exclude: Exclude, after: string) =>
      iso(fireTimes(timingOf({ cron: '0 * * * *', timezone, exclude }), identity).next(at(after)));
    // Beirut goes from 24:00 to 01:00, so that day begins at 01:00.
    expect(hourly('Asia/Beirut', excluding('2026-03-28'), '2026-03-27T22:00:00Z')).toBe('2026-03-28T22:00:00');
    expect(hourly('Asia/Beirut', excluding('2026-03-29'), '2026-03-28T22:00:00Z')).toBe('2026-03-29T21:00:00');
    // Havana goes from 01:00 back to 00:00, and Beirut from 24:00 back to 23:00 of the same day.
    expect(hourly('America/Havana', excluding('2026-11-01'), '2026-11-01T04:00:00Z')).toBe('2026-11-02T05:00:00');
    expect(hourly('Asia/Beirut', excluding('2026-10-24'), '2026-10-24T20:00:00Z')).toBe('2026-10-24T22:00:00');
    // Samoa left out 30 December 2011.
    expect(hourly('Pacific/Apia', excluding('2011-12-29'), '2011-12-29T20:00:00Z')).toBe('2011-12-30T10:00:00');
    expect(hourly('Pacific/Apia', excluding('2011-12-30'), '2011-12-30T09:00:00Z')).toBe('2011-12-30T10:00:00');
  });

  it('of a century of excluded seconds are found at once, and fires after 2100 never come', () => {
    const everySecond = (exclude: Exclude) => timingOf({ cron: '* * * * * *', timezone: 'America/New_York', exclude });
    const next = (exclude: Exclude) => iso(fireTimes(everySecond(exclude), identity).next(identity.createdAt));
    expect(next(excluding('2025-12-31/2099-12-30'))).toBe('2099-12-31T05:00:00');
    expect(next(excluding('2025-12-31/2100-12-31'))).toBeNull();
  });

  it('are judged by the calendar’s version at each moment, up to and with the moment of the next edit', () => {
    const daily = timingOf({ cron: '0 12 * * *', exclude: { dates: [], calendars: ['c'] } });
    const calendars = history(
      'c',
      [1, '2026-05-02T12:00:00Z', '2026-05-02', '2026-05-03', '2026-05-05'],
      [2, '2026-05-04T12:00:00Z', '2026-05-03', '2026-05-04', '2026-05-06'],
      [3, '2026-05-06T11:59:59.999Z'],
    );
    const times = fireTimes(daily, identity, calendars);
    const found: (string | null)[] = [];
    for (let next = times.next(at('2026-05-01T00:00:00Z')); found.length < 6 && next !== null; next = times.next(next))
      found.push(iso(next));
    // 3 May by the first version; 4 May too, which did not have it; 5 May by the second, which has it not.
    expect(found.map((text) => text?.slice(5, 10))).toEqual(['05-01', '05-02', '05-04', '05-05', '05-06', '05-07']);
    const reason = (day: string) => times.excludedBy(at(`2026-05-${day}T12:00:00Z`));
    expect(['02', '03', '04', '05', '06'].map(reason)).toEqual([null, 'c', null, null, null]);
  });

  it('before the first version are excluded by none, unless older versions are no longer kept', () => {
    const daily = timingOf({ cron: '0 12 * * *', exclude: { dates: [], calendars: ['c'] } });
    const next = (version: number) =>
      iso(
        fireTimes(daily, identity, history('c', [version, '2026-05-10T00:00:00Z', '2026-05-01'])).next(
          at('2026-05-01T00:00:00Z'),
        ),
      );
    expect([next(1), next(2)]).toEqual(['2026-05-01T12:00:00', '2026-05-02T12:00:00']);
  });

  it('cannot be computed without the histories of the calendars', () => {
    const daily = timingOf({ cron: '0 12 * * *', exclude: { dates: [], calendars: ['c'] } });
    expect(() => fireTimes(daily, identity)).toThrow('the history of the calendar c is not known here');
  });

  it('keep their jitter, whatever is excluded after them', () => {
    const hourly = { cron: '0 * * * *', jitterSeconds: 86_400 };
    const [plain, excluded] = [null, excluding('2026-05-02', '2026-05-04/2026-05-09')].map((exclude) =>
      fireTimes(timingOf({ ...hourly, exclude }), identity),
    );
    for (let hour = 0; hour < 24; hour += 1) {
      const fire = at('2026-05-01T00:00:00Z') + hour * 3_600_000;
      expect(excluded?.dueAt(fire)).toBe(plain?.dueAt(fire));
    }
  });

  it('of an interval, or of one moment, leave out the days too', () => {
    const interval = fireTimes(timingOf({ everySeconds: 3600, exclude: excluding('2026-05-01') }), identity);
    expect(iso(interval.next(at('2026-04-30T23:00:00Z')))).toBe('2026-05-02T00:00:00');
    const once = { at: at('2026-05-01T23:30:00Z'), exclude: excluding('2026-05-01') };
    expect(fireTimes(timingOf(once), identity).next(0)).toBeNull();
    expect(fireTimes(timingOf({ ...once, timezone: 'Europe/Berlin' }), identity).next(0)).toBe(once.at);
  });
});

describe('the cursor after an edit of a calendar', () => {
  const times = fireTimes(timingOf({ cron: '0 12 * * *', exclude: excluding('2026-05-04') }), identity);
  const noon = (day: number) => at(`2026-05-0${day}T12:00:00Z`);
  const edit = at('2026-05-03T00:00:00Z');
  const state = { plannedThrough: noon(2), updatedAt: noon(1) };
  const moved = (cursor: number | null, given: Partial<typeof state> = {}) =>
    iso(cursorByCalendars(times, { ...state, ...given, nextOccurrenceAt: cursor }, edit));

  it('leaves a day that is now excluded, and comes back to a day that no longer is', () => {
    expect(moved(noon(4), { plannedThrough: noon(3) })).toBe(iso(noon(5)));
    expect(moved(noon(7))).toBe(iso(noon(3)));
    expect(moved(null)).toBe(iso(noon(3)));
  });

  it('never goes back to a planned fire, to the time before the edit, or before an edit of the schedule', () => {
    expect(moved(noon(7), { plannedThrough: noon(5) })).toBe(iso(noon(6)));
    expect(moved(noon(7), { updatedAt: noon(3) })).toBe(iso(noon(5)));
  });

  it('stays on an occurrence from before the edit that is not planned yet', () => {
    expect(moved(noon(2), { plannedThrough: noon(1) })).toBe(iso(noon(2)));
  });
});

test('a timing is stored and read with its excluded days; one that no version of firelock writes is refused', () => {
  const given = timingOf({ cron: 'H 12 * * *', exclude: { dates: ['2026-05-01'], calendars: ['c'] } });
  expect(readTiming(timingText(given))).toEqual(given);
  expect(dependsOnIdentity(given)).toBe(true);
  for (const exclude of ['{}', '{"dates":[],"calendars":[5]}', '{"dates":["x"],"calendars":[]}', '5'])
    expect(() => readTiming(`{"cron":"* * * * *","exclude":${exclude}}`)).toThrow('its timing has exclude');
});
