import ICAL from 'ical.js';
import { describe, expect, it } from 'vitest';
import { NotSayable } from '../../../src/core/cron/foreign/foreign-fields.ts';
import { translated } from '../../../src/core/cron/foreign/foreign-forms.ts';
import { DEFAULT_TIMING } from '../../../src/core/timing/timing.ts';
import { withCountedEnd } from '../../../src/core/time/counted-end.ts';
import { fireTimes } from '../../../src/core/time/fire-times.ts';

const COUNT = 40;

/** The first moments of a series, as another library reads its rule. */
function momentsOf(start: string, rule: string): string[] {
  const iterator = ICAL.Recur.fromString(rule).iterator(ICAL.Time.fromDateTimeString(start));
  const moments: string[] = [];
  const next = () => iterator.next() as ICAL.Time | null;
  for (let time = next(); time !== null && moments.length < COUNT && time.year < 2100; time = next())
    moments.push(`${time.toString().replace('Z', '')}.000Z`);
  return moments;
}

/** The first fires of a schedule with the fields of this rule. */
function firesOf(start: string, rule: string): string[] {
  const line = `DTSTART:${start.replace(/[-:]/g, '')}`;
  const { startAt, endAt, exclude: _, ...fields } = withCountedEnd(translated(`${line}\nRRULE:${rule}`, 'rrule', null));
  const from = Date.parse(startAt ?? '');
  const timing = {
    ...{
      ...DEFAULT_TIMING,
      cron: null,
      everySeconds: null,
      at: null,
      after: null,
      overlap: 'allow' as const,
    },
    ...fields,
    ...{ startAt: from, endAt: endAt === undefined ? null : Date.parse(endAt), at: null },
  };
  const times = fireTimes(timing, { id: 'x', createdAt: from });
  const fires: string[] = [];
  for (let next = times.next(from - 1); next !== null && fires.length < COUNT; next = times.next(next))
    fires.push(new Date(next).toISOString());
  return fires;
}

describe('a rule of iCalendar fires when another library says that it does:', () => {
  it.each([
    ['2031-03-04T06:20:00', 'FREQ=DAILY'],
    ['2031-03-04T06:20:00', 'FREQ=DAILY;INTERVAL=3'],
    ['2031-03-04T06:20:00', 'FREQ=DAILY;BYHOUR=6,18;BYMINUTE=20,50'],
    ['2031-03-04T06:20:00', 'FREQ=DAILY;BYMONTH=3,9;BYDAY=TU,TH'],
    ['2031-03-04T06:20:00', 'FREQ=HOURLY;INTERVAL=5'],
    ['2031-03-04T06:20:00', 'FREQ=MINUTELY;INTERVAL=45;UNTIL=20310305T062000Z'],
    ['2031-03-04T06:20:00', 'FREQ=WEEKLY'],
    ['2031-03-05T06:20:00', 'FREQ=WEEKLY;INTERVAL=2;BYDAY=TU,WE,SU'],
    ['2031-03-04T06:20:00', 'FREQ=WEEKLY;INTERVAL=3;WKST=SU;BYDAY=TU,FR'],
    ['2031-03-04T06:20:00', 'FREQ=MONTHLY'],
    ['2031-03-31T06:20:00', 'FREQ=MONTHLY'],
    ['2031-03-15T06:20:00', 'FREQ=MONTHLY;INTERVAL=2;BYMONTHDAY=15,-1'],
    ['2031-03-29T06:20:00', 'FREQ=MONTHLY;BYMONTHDAY=-3'],
    ['2031-03-11T06:20:00', 'FREQ=MONTHLY;BYDAY=2TU'],
    ['2031-03-28T06:20:00', 'FREQ=MONTHLY;BYDAY=-1FR;UNTIL=20320101T000000Z'],
    ['2031-03-18T06:20:00', 'FREQ=MONTHLY;BYDAY=-2TU'],
    ['2031-03-31T06:20:00', 'FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1'],
    ['2031-06-13T06:20:00', 'FREQ=MONTHLY;BYMONTHDAY=13;BYDAY=FR'],
    ['2031-03-04T06:20:00', 'FREQ=YEARLY'],
    ['2031-05-26T06:20:00', 'FREQ=YEARLY;BYMONTH=5;BYDAY=-1MO'],
    ['2031-04-10T06:20:00', 'FREQ=YEARLY;BYYEARDAY=100,200'],
    ['2031-03-10T06:20:00', 'FREQ=YEARLY;INTERVAL=2;BYMONTH=3;BYMONTHDAY=10'],
    ['2031-03-04T06:20:00', 'FREQ=DAILY;COUNT=17'],
    ['2031-03-04T06:20:00', 'FREQ=HOURLY;INTERVAL=5;COUNT=23'],
    ['2031-03-05T06:20:00', 'FREQ=WEEKLY;INTERVAL=2;BYDAY=TU,WE,SU;COUNT=11'],
    ['2031-03-31T06:20:00', 'FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1;COUNT=12'],
  ])('from %s: %s', (start, rule) => {
    const moments = momentsOf(start, rule);
    expect(moments.length).toBeGreaterThan(9);
    expect(firesOf(start, rule)).toEqual(moments);
  });

  it('but for the two things in which that library leaves the RFC', () => {
    expect(firesOf('2032-02-29T06:20:00Z', 'FREQ=YEARLY').slice(0, 2)).toEqual([
      '2032-02-29T06:20:00.000Z',
      '2036-02-29T06:20:00.000Z',
    ]);
    expect(firesOf('2031-03-04T06:20:00Z', 'FREQ=YEARLY;BYDAY=20MO;UNTIL=20340101T000000Z')).toEqual([
      '2031-05-19T06:20:00.000Z',
      '2032-05-17T06:20:00.000Z',
      '2033-05-16T06:20:00.000Z',
    ]);
  });

  it('and in the zone of its start, at the same time of day all year', () => {
    const text =
      'DTSTART;TZID=Europe/Berlin:20310304T062000\nRRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=TU;UNTIL=20310901T000000Z';
    expect(translated(text, 'rrule', null)).toEqual({
      cron: '20 6 * * TUE',
      timezone: 'Europe/Berlin',
      every: { n: 2, unit: 'week', from: '2031-03-04' },
      startAt: '2031-03-04T05:20:00.000Z',
      endAt: '2031-09-01T00:00:01.000Z',
    });
  });
});

describe('dates and moments that a rule leaves out', () => {
  const START = 'DTSTART;TZID=Europe/Berlin:20310304T062000';
  const of = (...lines: string[]) => translated([START, ...lines].join('\n'), 'rrule', null);

  it.each([
    ['a day', ['RRULE:FREQ=DAILY', 'EXDATE;VALUE=DATE:20310306'], ['2031-03-06']],
    [
      'several, in any order of lines',
      ['EXDATE;VALUE=DATE:20310308,20310306', 'RRULE:FREQ=DAILY'],
      ['2031-03-06', '2031-03-08'],
    ],
    ['the only fire of its day', ['RRULE:FREQ=DAILY', 'EXDATE;TZID=Europe/Berlin:20310306T062000'], ['2031-03-06']],
    ['the same in UTC', ['RRULE:FREQ=WEEKLY', 'EXDATE:20310311T052000Z'], ['2031-03-11']],
    ['a day of many fires', ['RRULE:FREQ=HOURLY', 'EXDATE;VALUE=DATE:20310306'], ['2031-03-06']],
  ])('are days of exclude: %s', (_name, lines, dates) => {
    expect(of(...lines)).toMatchObject({ exclude: { dates } });
  });

  it.each([
    ['RRULE:FREQ=HOURLY', 'EXDATE:20310306T062000Z', 'one of several fires of its day'],
    ['RRULE:FREQ=DAILY', 'EXDATE;TZID=Europe/Berlin:20310306T063000', 'no moment at which it fires'],
    ['RRULE:FREQ=MONTHLY;BYDAY=MO,TU;BYSETPOS=-1', 'EXDATE;VALUE=DATE:20310401', 'another day would be picked'],
    ['RRULE:FREQ=DAILY', 'EXDATE:2031-03-06', 'is no EXDATE with dates'],
    ['RRULE:FREQ=DAILY', 'EXDATE;TZID=Mars/Olympus:20310306T062000', 'not the IANA name of a zone'],
    ['RRULE:FREQ=DAILY', 'RDATE:20310306T062000Z', 'only DTSTART and EXDATE may stand beside one rule'],
  ])('or are refused: %s and %s', (rule, line, reason) => {
    expect(() => of(rule, line)).toThrow(reason);
  });

  it('count towards COUNT, as all fires before them', () => {
    const { endAt, exclude } = withCountedEnd(of('RRULE:FREQ=DAILY;COUNT=3', 'EXDATE;VALUE=DATE:20310305'));
    expect([endAt, exclude]).toEqual(['2031-03-06T05:20:01.000Z', { dates: ['2031-03-05'] }]);
  });
});

describe('in a zone whose clocks change, what repeats within a day goes on by the clock:', () => {
  const berlin = (rule: string) =>
    translated(`DTSTART;TZID=Europe/Berlin:20310304T062030\nRRULE:${rule}`, 'rrule', null);

  it.each([
    ['FREQ=HOURLY', '30 20 * * * *'],
    ['FREQ=HOURLY;INTERVAL=6', '30 20 */6 * * *'],
    ['FREQ=HOURLY;INTERVAL=4', '30 20 2-22/4 * * *'],
    ['FREQ=MINUTELY;INTERVAL=15', '30 5-50/15 * * * *'],
    ['FREQ=SECONDLY;INTERVAL=10', '*/10 * * * * *'],
  ])('%s', (rule, cron) => {
    expect(berlin(rule)).toEqual({ cron, timezone: 'Europe/Berlin', startAt: '2031-03-04T05:20:30.000Z' });
  });

  it('and is refused where it does not divide the day', () => {
    expect(() => berlin('FREQ=HOURLY;INTERVAL=5')).toThrow(
      'INTERVAL=5 of HOURLY in Europe/Berlin, whose clocks may change',
    );
  });
});

describe('a rule is refused with the reason', () => {
  it.each([
    ['FREQ=DAILY;COUNT=-4', 'the rule has COUNT=-4, which is no number from 1 on'],
    ['FREQ=DAILY; INTERVAL=2', 'the rule has the part “ INTERVAL=2”, which is not known'],
    ['FREQ=DAILY;UNTIL=2031-03-04', 'the rule has UNTIL=2031-03-04, which is no date'],
    ['FREQ=DAILY;BYHOUR=6;BYHOUR=7', 'the rule has BYHOUR twice'],
    ['FREQ=DAILY;BYEASTER=1', 'the rule has the part “BYEASTER=1”, which is not known'],
    ['FREQ=DAILY;INTERVAL=2;BYHOUR=6;BYMINUTE=20', 'INTERVAL counts from DTSTART'],
    ['FREQ=YEARLY;BYWEEKNO=20', 'BYWEEKNO: no field counts the weeks of a year'],
    ['FREQ=MONTHLY;BYDAY=-2TU,-2WE;BYHOUR=6;BYMINUTE=20', 'BYDAY counts several weekdays of a month'],
    ['FREQ=MONTHLY;BYDAY=MO;BYSETPOS=1;BYHOUR=6,7;BYMINUTE=20', 'BYSETPOS counts times of day as well'],
    ['FREQ=MINUTELY;INTERVAL=7;BYHOUR=6', 'INTERVAL=7 of MINUTELY beside parts that leave some of its fires out'],
    ['DTSTART;VALUE=DATE:20310304\nRRULE:FREQ=DAILY', 'is no date with a time of day'],
    [
      'DTSTART:20310302T062000Z\nRRULE:FREQ=WEEKLY;INTERVAL=2;WKST=SU;BYDAY=SU,MO',
      'the weeks of every and pick begin on Monday',
    ],
  ])('%j', (text, reason) => {
    expect(() => translated(text, 'rrule', null)).toThrow(NotSayable);
    expect(() => translated(text, 'rrule', null)).toThrow(reason);
  });
});
