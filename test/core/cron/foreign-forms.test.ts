import { describe, expect, it } from 'vitest';
import { CronError, cronTimes } from '../../../src/core/cron/cron.ts';
import { NotSayable } from '../../../src/core/cron/foreign/foreign-fields.ts';
import { type System, translated } from '../../../src/core/cron/foreign/foreign-forms.ts';

function faultOf(expression: string): string {
  try {
    cronTimes(expression, null, 'nightly-report');
    return 'none';
  } catch (error) {
    if (error instanceof CronError) return error.message;
    throw error;
  }
}

/** The fields, or the reason why there are none. */
function fieldsOf(expression: string, system: System, zone: string | null = null): unknown {
  try {
    return translated(expression, system, zone);
  } catch (error) {
    if (error instanceof NotSayable) return error.message;
    throw error;
  }
}

describe('an expression of another system is refused with what to write:', () => {
  it.each([
    [
      '20 6 * * ? *',
      'month, column 10: “?”: write * for all, or H to have one picked; EventBridge’s 20 6 * * ? * is 20 6 * * * here',
    ],
    [
      '20 6 ? * 2-6 *',
      'hour, column 6: “?”: write * for all, or H to have one picked; EventBridge’s 20 6 ? * 2-6 * is 20 6 * * MON-FRI here',
    ],
    ['0 20 6 ? * 2', 'Quartz’s 0 20 6 ? * 2 is 20 6 * * MON here'],
    ['0 20 6 ? * 9', 'Quartz and EventBridge count Sunday as 1, so write names of weekdays'],
    ['20 6 ? * 2', 'Quartz and EventBridge count Sunday as 1, so write names of weekdays'],
    [
      '0 20 6 ? * MON 2031',
      'is Quartz’s; write cron: "20 6 * * MON", startAt: "2031-01-01T00:00:00.000Z", endAt: "2032-01-01T00:00:00.000Z" (if that is UTC)',
    ],
    ['cron(20 6 * * ? *)', '“cron(20 6 * * ? *)” is EventBridge’s; write 20 6 * * *'],
    ['cron(20 6 * * * *)', 'EventBridge wants ? in just one of the day fields'],
    ['rate(7 minutes)', '“rate(7 minutes)” is EventBridge’s; write everySeconds: 420'],
    ['at(2031-05-06T07:08:09)', 'write at: "2031-05-06T07:08:09.000Z" (if that is UTC)'],
    ['@every 1h30m', '“@every 1h30m” is an interval; write everySeconds: 5400'],
    ['90s', 'write everySeconds: 90'],
    ['1h 30min', 'write everySeconds: 5400'],
    ['PT20M', 'write everySeconds: 1200'],
    ['P1DT12H', 'write everySeconds: 129600'],
    ['every 7 minutes', 'write everySeconds: 420'],
    ['every hour', 'write everySeconds: 3600'],
    ['every day at 6:20', 'write 20 6 * * *'],
    ['hourly', '“hourly” is a nickname without its @; write @hourly'],
    ['weekly', '“weekly” is a Monday in systemd, where @weekly is a Sunday; write 0 0 * * MON'],
    ['@minutely', 'write * * * * *'],
    ['6:20', '“6:20” is a time of day; write 20 6 * * *'],
    ['06:20:30', 'write 30 20 6 * * *'],
    ['26:20', '“26:20” is a time of day: hour “26”: no value of systemd'],
    ['2031-05-06T07:08:09Z', 'is a point in time; write at: "2031-05-06T07:08:09.000Z"'],
    ['2031-05-06 07:08+02:00', 'write at: "2031-05-06T05:08:00.000Z"'],
    ['2031-05-06', 'is a point in time: it has no time of day'],
    ['*-*-* 06:20:00', '“*-*-* 06:20:00” is systemd’s; write 20 6 * * *'],
    ['Tue 6:20', 'write 20 6 * * TUE'],
    ['Tue..Thu 6:20 Asia/Tokyo', 'write cron: "20 6 * * TUE-THU", timezone: "Asia/Tokyo"'],
    ["crontab(minute=20, hour='*/6')", 'is Celery’s; write 20 */6 * * *'],
    ['timedelta(minutes=7)', 'write everySeconds: 420'],
    ['FREQ=DAILY;BYHOUR=6;BYMINUTE=20', 'is a rule of iCalendar; write 20 6 * * *'],
    ['RRULE:FREQ=DAILY', 'it takes its minute from DTSTART: put that line before the rule'],
  ])('%j', (expression, message) => {
    expect(faultOf(expression)).toContain(message);
  });

  it('none of these forms is taken from expressions that firelock has', () => {
    for (const expression of ['5 H 1 1 1', '? ? * * *', '? 0 12 * * *', '*/5 * * * * *', '@weekly'])
      expect(faultOf(expression)).toBe('none');
  });

  it('the longest of them is told in no time, whatever its characters', () => {
    const pieces = ['1a ', ';FREQ=', 'a=', '*-', '1..', '(', "'", ' ', '9:', '~', 'P1', 'MON,'];
    for (const one of pieces)
      for (const other of pieces) {
        const text = (one + other).repeat(128).slice(0, 256);
        expect(faultOf(text)).not.toBe('none');
        for (const system of ['systemd', 'celery', 'rrule'] as const)
          expect(typeof fieldsOf(text.repeat(8), system)).toBe('string');
      }
    expect(fieldsOf('1'.repeat(2049), 'celery')).toBe('it is longer than 2048 characters');
  });
});

const BERLIN = { timezone: 'Europe/Berlin' };

describe('fields of a schedule for an expression', () => {
  it.each([
    ['0 20 6 ? * TUE-SAT', { cron: '20 6 * * TUE-SAT', ...BERLIN }],
    ['15 0/20 8,20 * * ?', { cron: '15 */20 8,20 * * *', ...BERLIN }],
    ['0 20 6 ? * 3L', { cron: '20 6 * * TUEL', ...BERLIN }],
    ['0 20 6 ? * 3#2', { cron: '20 6 * * TUE#2', ...BERLIN }],
    ['0 20 6 ? * L', { cron: '20 6 * * SAT', ...BERLIN }],
    ['0 20 6 ? * 2/3', { cron: '20 6 * * MON,THU', ...BERLIN }],
    ['0 20 23-1 ? * SAT-MON', { cron: '20 0,1,23 * * MON,SAT,SUN', ...BERLIN }],
    ['0 20 6 20W * ?', { cron: '20 6 20W * *', ...BERLIN }],
    ['0 20 6 L-4 * ?', { cron: '20 6 * * *', ...BERLIN, pick: { of: 'month', nth: [-5] } }],
    ['0 20 6 L-4W * ?', 'day of month “L-4W”: no value of Quartz'],
    ['0 20 6 7 7 ? 2031', { at: '2031-07-07T04:20:00.000Z' }],
    [
      '0 20 6 * 7 ? 2031-2032',
      {
        cron: '20 6 * 7 *',
        ...BERLIN,
        startAt: '2030-12-31T23:00:00.000Z',
        endAt: '2032-12-31T23:00:00.000Z',
      },
    ],
    ['0 20 6 * 7 ? 2031,2033', 'the years 2031,2033 do not follow each other, and startAt and endAt bound one period'],
    ['0 30 2 30 3 ? 2031', '2031-03-30T02:30:00 does not exist in Europe/Berlin: the clocks pass over it'],
    [
      '0 20 6 * * *',
      'Quartz wants ? in just one of the day fields; if it is Spring’s, its six fields mean the same here',
    ],
  ])('of Quartz: %s', (expression, fields) => {
    expect(fieldsOf(expression, 'quartz', 'Europe/Berlin')).toEqual(fields);
  });

  it.each([
    ['eventbridge', 'cron(0/20 6 ? JAN-MAR 7 *)', { cron: '*/20 6 * 1-3 SAT' }],
    [
      'eventbridge',
      '20 6 1,L * ? 2031-2032',
      { cron: '20 6 1,L * *', startAt: '2031-01-01T00:00:00.000Z', endAt: '2033-01-01T00:00:00.000Z' },
    ],
    ['eventbridge', 'rate(3 days)', { everySeconds: 259_200 }],
    ['eventbridge', 'rate(3 months)', 'it is no number of whole seconds'],
    ['jenkins', 'H/20 * * * *', { cron: 'H/20 * * * *' }],
    [
      'jenkins',
      'TZ=Asia/Tokyo\n# at night\nH H(1-4) * * 1-5\n\n@weekly',
      { cron: ['H H(1-4) * * 1-5', 'H H * * H'], timezone: 'Asia/Tokyo' },
    ],
    ['jenkins', '20 6 1-7 * 2', { cron: '20 6 1-7 * +2' }],
    ['jenkins', '20 6 L * *', '“L” is no value of Jenkins'],
    ['celery', "crontab(hour='6,18', minute=20, day_of_week='sat-mon')", { cron: '20 6,18 * * MON,SAT,SUN' }],
    ['celery', "crontab(0, 6, day_of_month='1-7', day_of_week='tuesday')", { cron: '0 6 1-7 * +TUE' }],
    ['celery', 'crontab(0, 6, 1)', 'versions of Celery differ about the order of the fields: name them'],
    ['celery', 'timedelta(days=1, hours=6)', { everySeconds: 108_000 }],
    ['celery', '45.0', { everySeconds: 45 }],
    ['celery', "solar('sunrise', 52, 13)", 'it is neither crontab(…), nor timedelta(…), nor a number of seconds'],
    [
      'nomad',
      '20 6 * * TUE 2031',
      { cron: '20 6 * * TUE', startAt: '2031-01-01T00:00:00.000Z', endAt: '2032-01-01T00:00:00.000Z' },
    ],
    ['nomad', '*/20 * * * * * *', { cron: '*/20 * * * * *' }],
    ['nomad', '20 6 1-31 * TUESDAY', { cron: '20 6 * * *' }],
    ['nomad', '20 6 13 * FRI', { cron: '20 6 13 * FRI' }],
  ] as const)('of %s: %j', (system, expression, fields) => {
    expect(fieldsOf(expression, system)).toEqual(fields);
  });

  // What `systemd-analyze calendar --iterations` says of each.
  it.each([
    ['minutely', { cron: '* * * * *' }],
    ['weekly', { cron: '0 0 * * MON' }],
    ['quarterly', { cron: '0 0 1 */3 *' }],
    ['Tue,Thu..Sat *-*-* 6:20', { cron: '20 6 * * TUE,THU-SAT' }],
    ['*:0/20', { cron: '*/20 * * * *' }],
    ['6..18/3:20:30', { cron: '30 20 6-18/3 * * *' }],
    ['Tue *-*-08..14 06:20', { cron: '20 6 8-14 * +TUE' }],
    ['*-*~01 06:20', { cron: '20 6 L * *' }],
    ['*-02~04,1 06:20', { cron: '20 6 * 2 *', pick: { of: 'month', nth: [-4, -1] } }],
    ['Fri *-*~07/1 06:20', { cron: '20 6 * * FRIL' }],
    ['Fri *-*~05 06:20', 'a weekday beside days counted from the end of the month'],
    ['2031-05-06 07:08 Asia/Tokyo', { at: '2031-05-05T22:08:00.000Z' }],
    [
      '2031..2032-*-* 06:20',
      { cron: '20 6 * * *', startAt: '2031-01-01T00:00:00.000Z', endAt: '2033-01-01T00:00:00.000Z' },
    ],
    ['20min', { everySeconds: 1200 }],
    ['*-*-* */2:00', 'hour “*/2”: systemd steps from a value, as 0/2'],
    ['Fri..Mon', 'day of week “Fri..Mon”: a range goes upwards'],
    ['6:20:00.5', 'second “00.5”: no value of systemd'],
    ['6:20 Mars/Olympus', '“Mars/Olympus” is no zone, and no part of systemd’s times'],
  ])('of systemd: %s', (expression, fields) => {
    expect(fieldsOf(expression, 'systemd')).toEqual(fields);
  });
});
