import { describe, expect, it } from 'vitest';
import { everyDay } from '../../../src/core/cron/day-pattern.ts';
import { cronTimes } from '../../../src/core/cron/cron.ts';
import { firesIn } from '../../../src/core/cron/cron-fires.ts';
import { parseCron } from '../../../src/core/cron/cron-parse.ts';
import { daysOfPattern, nextDay, localTimesOf } from '../../../src/core/cron/cron-wall.ts';
import { zoneOffsets } from '../../../src/core/zones/zone-offsets.ts';
import { at, firesAfter } from '../time/support.ts';

describe('a cron expression fires', () => {
  it.each([
    ['*/15 * * * *', null, '2026-11-20T12:01:00Z', '2026-11-20T12:15:00Z'],
    ['30 */2 * * * *', null, '2026-11-20T12:00:30Z', '2026-11-20T12:02:30Z'],
    ['0 9 * * MON-FRI', 'Europe/Paris', '2026-11-20T09:00:00Z', '2026-11-23T08:00:00Z'],
    ['0 0 L * *', 'UTC', '2026-02-01T00:00:00Z', '2026-02-28T00:00:00Z'],
    ['@daily', 'america/new_york', '2026-11-20T12:00:00Z', '2026-11-21T05:00:00Z'],
    ['0 0 29 2 *', null, '2026-01-01T00:00:00Z', '2028-02-29T00:00:00Z'],
    ['59 59 23 31 12 *', null, '2026-01-01T00:00:00Z', '2026-12-31T23:59:59Z'],
  ])('%s in %s next after %s at %s', (expression, zone, after, next) => {
    expect(cronTimes(expression, zone, '').next(at(after))).toBe(at(next));
  });

  it('strictly after the instant, to the millisecond', () => {
    const times = cronTimes('0 12 * * *', null, '');
    expect(times.next(at('2026-11-20T11:59:59.999Z'))).toBe(at('2026-11-20T12:00:00Z'));
    expect(times.next(at('2026-11-20T12:00:00Z'))).toBe(at('2026-11-21T12:00:00Z'));
    expect(times.next(at('2026-11-20T12:00:00.001Z'))).toBe(at('2026-11-21T12:00:00Z'));
  });

  it('the same whatever was asked before', () => {
    const times = cronTimes('0 2 * * 1', 'Europe/Berlin', '');
    const asked = ['2027-06-01', '2026-03-28', '2099-12-31', '2026-03-28', '2026-03-27', '2027-06-01'];
    const answers = asked.map((day) => times.next(at(`${day}T00:00:00Z`)));
    const alone = asked.map((day) => {
      const fresh = firesIn(zoneOffsets('Europe/Berlin'), localTimesOf(parseCron('0 2 * * 1', '')));
      return fresh.next(at(`${day}T00:00:00Z`));
    });
    expect(answers).toEqual(alone);
  });

  // Croner up to 11.0.0 lost them wherever the days selected also match the 30th or 31st of February.
  it.each(['0 0 */5 * *', '0 0 1,31 * *', '0 0 1,30 * *', '0 0 2,31 * *', '0 9 1 * MON', '0 0 1-31 * *'])(
    '%s on the first days of March, as a calendar has it',
    (expression) => {
      const [, hour = '', days = '', , weekday] = expression.split(' ');
      const listed = new Set(days.split(',').map(Number));
      const expected: string[] = [];
      for (let day = at('2026-02-25T00:00:00Z'); day < at('2026-03-08T00:00:00Z'); day += 86_400_000) {
        const date = new Date(day);
        const number = date.getUTCDate();
        const selected =
          days === '1-31' ||
          (days === '*/5' ? number % 5 === 1 : listed.has(number)) ||
          (weekday === 'MON' && date.getUTCDay() === 1);
        if (selected) expected.push(`${date.toISOString().slice(0, 10)}T${hour.padStart(2, '0')}:00:00Z`);
      }
      expect(firesAfter(expression, null, '2026-02-24T23:59:59Z', expected.length)).toEqual(expected);
    },
  );

  it.each([
    ['in ranges', '0 0 * * 5-7', ['2026-11-20', '2026-11-21', '2026-11-22', '2026-11-27']],
    ['in ranges that end on it by name', '0 0 * * SAT-SUN', ['2026-11-21', '2026-11-22', '2026-11-28']],
    ['as 7', '0 0 * * 7', ['2026-11-22', '2026-11-29']],
    ['in steps', '0 0 * * */2', ['2026-11-21', '2026-11-22', '2026-11-24', '2026-11-26', '2026-11-28']],
    ['in all of 0-7', '0 0 * * 0-7', ['2026-11-20', '2026-11-21', '2026-11-22', '2026-11-23']],
    ['alone in a range of one', '0 0 * * SUN-SUN', ['2026-11-22', '2026-11-29']],
    ['the last of a month', '0 0 * * 7L', ['2026-11-29', '2026-12-27']],
  ])('on Sundays %s: %s', (_, expression, days) => {
    expect(firesAfter(expression, null, '2026-11-19T12:00:00Z', days.length)).toEqual(
      days.map((day) => `${day}T00:00:00Z`),
    );
  });

  it.each([
    ['13 * 5', ['2026-11-13', '2026-11-20', '2026-11-27', '2026-12-04', '2026-12-11', '2026-12-13']],
    ['13 * +5', ['2026-11-13', '2027-08-13', '2028-10-13']],
    ['30 * +SAT', ['2027-01-30', '2027-10-30', '2028-09-30']],
    ['*/1 * MON', ['2026-11-09', '2026-11-16']],
    ['1-31 * MON', ['2026-11-07', '2026-11-08', '2026-11-09']],
    ['13 * */1', ['2026-11-13', '2026-12-13']],
    ['13 * 0-6', ['2026-11-07', '2026-11-08']],
    ['* * +MON', ['2026-11-09', '2026-11-16']],
    ['13 * +*', ['2026-11-13', '2026-12-13']],
  ])('on %s: days of month or of week where both are restricted, both after a +', (fields, days) => {
    expect(firesAfter(`0 0 ${fields}`, null, '2026-11-06T12:00:00Z', days.length)).toEqual(
      days.map((day) => `${day}T00:00:00Z`),
    );
  });
});

describe('a fire that a change of the clocks', () => {
  const noteAt = (expression: string, instant: string) =>
    cronTimes(expression, 'Europe/Berlin', '').noteOf(at(instant));

  it('moved is marked as moved', () => {
    expect(firesAfter('30 2 * * *', 'Europe/Berlin', '2026-03-28T12:00:00Z', 1)).toEqual(['2026-03-29T01:00:00Z']);
    expect(noteAt('30 2 * * *', '2026-03-29T01:00:00Z')).toBe('moved by DST');
    expect(noteAt('30 2 * * *', '2026-03-30T00:30:00Z')).toBeNull();
    // One fire for 02:30 and 03:00.
    expect(noteAt('0,30 2,3 * * *', '2026-03-29T01:00:00Z')).toBe('moved by DST');
    expect(noteAt('0 3 * * *', '2026-03-29T01:00:00Z')).toBeNull();
    // Every hour keeps real time: nothing is moved.
    expect(noteAt('0 * * * *', '2026-03-29T01:00:00Z')).toBeNull();
  });

  it('could have repeated is marked, on each pass on which it fires', () => {
    const passes = ['2026-10-25T00:30:00Z', '2026-10-25T01:30:00Z'];
    expect(firesAfter('30 * * * *', 'Europe/Berlin', '2026-10-25T00:00:00Z', 2)).toEqual(passes);
    expect(passes.map((pass) => noteAt('30 * * * *', pass))).toEqual(['repeated hour', 'repeated hour']);
    expect(firesAfter('30 2 * * *', 'Europe/Berlin', '2026-10-25T00:00:00Z', 2)).toEqual([
      passes[0],
      '2026-10-26T01:30:00Z',
    ]);
    expect(noteAt('30 2 * * *', '2026-10-25T00:30:00Z')).toBe('repeated hour');
    expect(noteAt('30 * * * *', '2026-10-24T23:30:00Z')).toBeNull();
    expect(noteAt('0 * * * *', '2026-10-25T02:00:00Z')).toBeNull();
  });

  it('swallowed together with its whole date does not happen', () => {
    // Apia had no 30 December 2011.
    expect(firesAfter('0 9 30 12 *', 'Pacific/Apia', '2011-01-01T00:00:00Z', 1)).toEqual(['2012-12-29T19:00:00Z']);
    expect(cronTimes('0 0 * * *', 'Pacific/Apia', '').noteOf(at('2011-12-30T10:00:00Z'))).toBeNull();
  });

  it('depends on the set of hours, not on its spelling', () => {
    const days = (expression: string) => firesAfter(expression, 'Europe/Berlin', '2026-03-28T20:00:00Z', 20);
    expect(days('30 */2 * * *')).toEqual(days('30 0,2,4,6,8-22/2 * * *'));
    expect(days('30 0-23 * * *')).toEqual(days('30 * * * *'));
    expect(days('30 0-11,12-23 * * *')).toEqual(days('30 */1 * * *'));
    expect(days('30 */2 * * *')).toContain('2026-03-29T01:00:00Z');
  });

  it('leaves to a daily job one fire on each day, in every zone, whatever the hour', () => {
    for (const zone of ['Europe/Berlin', 'America/Nuuk', 'America/Havana', 'Australia/Lord_Howe', 'Africa/Cairo']) {
      for (let hour = 0; hour < 24; hour += 1) {
        const times = cronTimes(`30 ${hour} * * *`, zone, '');
        let fires = 0;
        for (let fire = times.next(at('2026-01-01T12:00:00Z')); fire !== null && fire <= at('2027-01-01T12:00:00Z');) {
          fires += 1;
          fire = times.next(fire);
        }
        expect({ zone, hour, fires }).toEqual({ zone, hour, fires: 365 });
      }
    }
  });
});

describe('the search for the next fire', () => {
  it.each(['0 0 31 2 *', '0 0 30 2 *', '0 0 31 4,6,9,11 *', '0 0 29 2 +SUN#4', '0 0 LW * +SAT', '0 0 31W 6 *'])(
    'of %s answers that there is none',
    (expression) => {
      for (const zone of [null, 'Europe/Berlin', 'Asia/Tokyo', 'Pacific/Apia']) {
        expect(cronTimes(expression, zone, '').next(at('2026-01-01T00:00:00Z'))).toBeNull();
      }
    },
  );

  it.each([
    ['0 0 29 2 +MON', '2044-02-29'],
    ['0 0 29 2 +SUN#5', '2032-02-29'],
    // The longest there is: no leap year in 2100.
    ['0 0 29 2 +MON', '2112-02-29', '2072-02-29'],
  ])('of %s finds it (%s), however far', (expression, day, after = '2026-01-01') => {
    expect(firesAfter(expression, null, `${after}T12:00:00Z`, 1)).toEqual([`${day}T00:00:00Z`]);
  });

  it('looks at no more than 41 years of months', () => {
    let asked = 0;
    const never = daysOfPattern(
      () => {
        asked += 1;
        return 0;
      },
      2 ** 12 - 1,
    );
    expect(nextDay(never, 20_000)).toBeNull();
    expect(asked).toBeLessThanOrEqual(41 * 12 + 1);
  });

  it('computes only the selected months', () => {
    let asked = 0;
    const leapDays = daysOfPattern((length) => {
      asked += 1;
      return length === 29 ? 2 ** 28 : 0;
    }, 2);
    expect(nextDay(leapDays, Date.UTC(2096, 2, 1) / 86_400_000)).toBe(Date.UTC(2104, 1, 29) / 86_400_000);
    expect(asked).toBe(8);
  });

  it.each(['0 0 29 2 +MON', '0 0 31 2 *', '0 0 1 1 *', '30 2 29 2 +THU'])(
    'of %s computes few years of a zone, though it passes many',
    (expression) => {
      const zone = zoneOffsets('America/New_York');
      let asked = 0;
      const counted = { at: (second: number) => ((asked += 1), zone.at(second)) };
      firesIn(counted, localTimesOf(parseCron(expression, ''))).next(at('2026-06-01T00:00:00Z'));
      expect(asked).toBeLessThanOrEqual(5);
    },
  );

  it.each([
    [`0 0 ${'1-31/30,'.repeat(29)}L 2 +6`, '2026-02-28T00:00:00Z'],
    [`* * * * ${'SUN,'.repeat(61)}MON`, '2026-01-04T00:00:00Z'],
    [`${Array.from({ length: 60 }, (_, value) => value).join(',')} * * * * *`, '2026-01-01T00:00:01Z'],
  ])('reads %s as what it comes to', (expression, next) => {
    expect(expression.length).toBeLessThanOrEqual(256);
    expect(firesAfter(expression, null, '2026-01-01T00:00:00Z', 1)).toEqual([next]);
  });

  it('ends with the year 9999, and begins with 1800', () => {
    const times = cronTimes('0 0 1 1 *', null, '');
    expect(times.next(at('9998-06-01T00:00:00Z'))).toBe(at('9999-01-01T00:00:00Z'));
    expect(times.next(at('9999-06-01T00:00:00Z'))).toBeNull();
    expect(times.next(Infinity)).toBeNull();
    expect(times.next(-Infinity)).toBe(at('1800-01-01T00:00:00Z'));
  });
});

describe('a pattern of days', () => {
  it('for every day has as many days as the month', () => {
    expect([28, 29, 30, 31].map((length) => everyDay(length, 0).toString(2).length)).toEqual([28, 29, 30, 31]);
  });
});
