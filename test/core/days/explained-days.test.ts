import { describe, expect, it } from 'vitest';
import { type ExplainedDay, dayExplainer, daysOfMonth } from '../../../src/core/time/explained-days.ts';
import { datesAtEdit } from '../../../src/core/time/kept-dates.ts';
import { daySetOfEntries } from '../../../src/core/exclusions/exclusion.ts';
import type { Timing } from '../../../src/core/timing/timing.ts';
import { fireTimes } from '../../../src/core/time/fire-times.ts';
import { timingOf } from '../time/support.ts';
import { localTime } from '../../../src/core/zones/zone.ts';
import { zoneOffsets } from '../../../src/core/zones/zone-offsets.ts';
import { calendarsOfDays, dayCaseNear, timingOfDays } from '../time-rule/day-cases.ts';
import { casesOf } from '../time-rule/depth.ts';
import { triples } from '../time-rule/triples.ts';

const DAY_MS = 86_400_000;
const at = (text: string) => Date.parse(`${text}Z`);
const identity = { id: 'job', createdAt: at('2026-01-01T00:00') };
const CALENDARS = new Map([
  [
    'holidays',
    {
      id: 'holidays',
      versions: [{ version: 1, at: 0, days: daySetOfEntries(['2026-12-25', '2026-12-31']) }],
    },
  ],
]);
const timing = (given: Partial<Timing>) => timingOf({ cron: '0 9 * * *', ...given });
const WORKING = { dates: [], calendars: ['holidays'], weekdays: ['sat', 'sun'] } as const;

function month(of: Timing, from = '2026-12-10T00:00', maxFires = 3): Map<string, ExplainedDay> {
  const explain = dayExplainer({ timing: of, identity, calendars: CALENDARS }, maxFires);
  return new Map(daysOfMonth(of.timezone, at(from)).map((day) => [explain(day).date.slice(8), explain(day)]));
}

const verdicts = (days: Map<string, ExplainedDay>, ...dates: string[]) =>
  dates.map((date) => {
    const { verdict, reason, movedTo, movedFrom } = days.get(date) ?? {};
    return [verdict, reason, movedTo, ...(movedFrom ?? [])].filter((part) => part !== null).join(' ');
  });

describe('a date is explained by the first step that left it without fires', () => {
  it('where the last working day of the month is picked', () => {
    const days = month(timing({ exclude: WORKING, pick: { of: 'month', nth: [-1] } }));
    expect([...days.keys()]).toHaveLength(31);
    expect(verdicts(days, '24', '25', '26', '30', '31')).toEqual([
      ...['notPicked', 'excluded calendar holidays', 'excluded weekday sat', 'fires'],
      'excluded calendar holidays',
    ]);
    expect(days.get('30')?.fires).toEqual([at('2026-12-30T09:00')]);
  });

  it('where fires move to another day, which may lie in the next month', () => {
    const onFridays = month(timing({ cron: '0 9 * * FRI', exclude: WORKING, onExcluded: 'next' }));
    expect(verdicts(onFridays, '24', '25', '28')).toEqual([
      ...['notSelected', 'moved calendar holidays 2026-12-28', 'fires 2026-12-25'],
    ]);
    const daily = month(timing({ exclude: WORKING, onExcluded: 'next' }));
    expect(verdicts(daily, '28', '31')).toEqual([
      ...['fires 2026-12-25 2026-12-26 2026-12-27', 'moved calendar holidays 2027-01-01'],
    ]);
  });

  it('where it is not its turn, or it lies outside of the schedule', () => {
    const every = { n: 2, unit: 'week', from: '2026-12-09' } as const;
    const days = month(timing({ cron: '0 9 * * MON', every, endAt: at('2026-12-21T09:00') }));
    expect(verdicts(days, '07', '08', '14', '21')).toEqual(['notItsTurn', 'notSelected', 'notItsTurn', 'outside']);
  });

  it('where an interval meets excluded days, and lists no more fires than asked for', () => {
    const days = month(timing({ cron: null, everySeconds: 3600, exclude: WORKING, startAt: at('2026-12-10T00:00') }));
    expect(verdicts(days, '09', '10', '12')).toEqual(['notSelected', 'fires', 'excluded weekday sat']);
    expect(days.get('10')).toMatchObject({ isCut: true, fires: { length: 3 } });
  });

  it('where clocks were set forward over its only fire, and where a country left it out', () => {
    const exclude = { dates: ['2027-01-01'], calendars: [] };
    const nuuk = month(timing({ cron: '30 23 * * *', timezone: 'America/Nuuk', exclude }), '2027-03-10T00:00');
    expect(verdicts(nuuk, '27', '28')).toEqual(['clocks', 'fires']);
    expect(nuuk.get('28')?.fires).toHaveLength(2);
    const apia = month(timing({ timezone: 'Pacific/Apia', exclude }), '2011-12-10T00:00');
    expect(verdicts(apia, '29', '30', '31')).toEqual(['fires', 'noSuchDate', 'fires']);
  });

  it('where an edit keeps what was decided for it', () => {
    const before = timing({ cron: '0 9 * * FRI', exclude: WORKING, onExcluded: 'next' });
    const after = timing({ cron: '0 9 * * FRI' });
    const now = at('2026-12-26T10:00');
    const { kept } = datesAtEdit({ before, after, identity, now, calendars: CALENDARS });
    const days = month({ ...after, ...(kept && { kept }) });
    expect(verdicts(days, '25', '28')).toEqual(['moved calendar holidays 2026-12-28', 'fires 2026-12-25']);
  });
});

const offsetAt = (zone: string, day: number) => zoneOffsets(zone).at(day * 86_400).offset;

describe('for random definitions, edits of calendars and zones that change their clocks,', () => {
  const cases = triples(0, casesOf(300))
    .filter(({ from }) => from > Date.UTC(2000, 6, 1))
    .map(dayCaseNear);
  const known = cases.map((one) => {
    const ruled = {
      timing: timingOfDays(one),
      identity: { id: '', createdAt: one.since },
      calendars: calendarsOfDays(one),
    };
    const explain = dayExplainer(ruled, 20);
    return { one, ruled, days: daysOfMonth(one.zone, one.from).map((day) => ({ day, ...explain(day) })) };
  });

  it('the dates that are said to fire, and when, are exactly those of the rule', () => {
    for (const { one, ruled, days } of known) {
      const { timing, identity, calendars } = ruled;
      const times = fireTimes(timing, identity, calendars);
      const expected = new Map<string, number[]>();
      const begin = ((days[0]?.day ?? 0) - 2) * DAY_MS;
      let until = '9999';
      let left = 400;
      for (let fire = times.next(begin); fire !== null && fire < begin + 35 * DAY_MS; fire = times.next(fire)) {
        const date = localTime(fire, one.zone).slice(0, 10);
        expected.set(date, [...(expected.get(date) ?? []), fire]);
        if ((left -= 1) === 0) {
          until = date;
          break;
        }
      }
      for (const { date, verdict, fires } of days.filter((day) => day.date < until)) {
        const wanted = (expected.get(date) ?? []).sort((a, b) => a - b).slice(0, 20);
        expect([fires, verdict === 'fires'], `${date} ${JSON.stringify(one)}`).toEqual([wanted, wanted.length > 0]);
      }
    }
  });

  it('without the step that is blamed a date fires, and without the later steps it does not', () => {
    const counts: Record<string, number> = {};
    for (const { one, ruled, days } of known) {
      const { timing, identity, calendars } = ruled;
      const firesOn = (change: Partial<Timing>) => {
        const times = fireTimes({ ...timing, ...change }, identity, calendars);
        return (day: number) => {
          const begin = (day * 86_400 - offsetAt(one.zone, day)) * 1000;
          return (times.next(begin - 1) ?? Infinity) < begin + DAY_MS;
        };
      };
      const bare = firesOn({ every: null, exclude: null, pick: null, onExcluded: 'skip' });
      const inTurn = firesOn({ exclude: null, pick: null, onExcluded: 'skip' });
      const isPlain = ({ day }: { day: number }) =>
        new Set([-2, 0, 2].map((away) => offsetAt(one.zone, day + away))).size === 1;
      for (const day of days.filter(isPlain)) {
        const { verdict, reason } = day;
        counts[verdict] = (counts[verdict] ?? 0) + 1;
        const isMoved = day.movedFrom.length > 0;
        const got = [bare(day.day), inTurn(day.day), reason !== null, timing.pick !== null];
        const about = `${day.date} ${verdict} ${JSON.stringify(one)}`;
        if (verdict === 'notSelected') expect(got[0], about).toBe(false);
        if (verdict === 'notItsTurn') expect(got.slice(0, 2), about).toEqual([true, false]);
        if (verdict === 'excluded' || verdict === 'moved') expect(got.slice(0, 3), about).toEqual([true, true, true]);
        if (verdict === 'notPicked') expect(got, about).toEqual([true, true, false, true]);
        if (verdict === 'fires' && !isMoved) expect(got.slice(0, 2), about).toEqual([true, true]);
        const target = days.find(({ date }) => date === day.movedTo);
        if (target) expect(target.movedFrom, about).toContain(day.date);
      }
    }
    for (const verdict of ['fires', 'notSelected', 'notItsTurn', 'excluded', 'moved', 'notPicked'])
      expect(counts[verdict], verdict).toBeGreaterThan(50);
    expect(counts['clocks'] ?? 0).toBe(0);
  });
});
