import { describe, expect, it } from 'vitest';
import { CronError } from '../../../src/core/cron/cron.ts';
import { describeCron, describeInterval } from '../../../src/core/describe/describe.ts';

describe('an expression in plain English', () => {
  it.each([
    ['* * * * *', 'Every minute'],
    ['* * * * * *', 'Every second'],
    ['*/5 * * * *', 'Every 5 minutes'],
    ['*/30 * * * * *', 'Every 30 seconds'],
    ['0 9 * * MON-FRI', 'At 09:00, Monday through Friday'],
    ['00 09 * * *', 'At 09:00'],
    ['@weekly', 'At 00:00, only on Sunday'],
    ['@hourly', 'Every hour'],
    ['@yearly', 'At 00:00, on day 1 of the month, only in January'],
    ['0,30 2 * * *', 'At 02:00 and 02:30'],
    ['*/15 9-17 * * 1-5', 'Every 15 minutes, between 09:00 and 17:59, Monday through Friday'],
    ['30 4 1,15 * 5', 'At 04:30, on days 1 and 15 of the month, or on Friday'],
    ['0 0 30 * +SAT', 'At 00:00, on day 30 of the month, only on Saturday'],
    ['0 0 L * *', 'At 00:00, on the last day of the month'],
    ['0 0 LW * *', 'At 00:00, on the last weekday of the month'],
    ['0 0 20W * *', 'At 00:00, on the weekday nearest day 20 of the month'],
    ['0 0 1W,15W,3 * *', 'At 00:00, on day 3, the weekday nearest day 1, and the weekday nearest day 15 of the month'],
    ['0 0 * * 7L', 'At 00:00, on the last Sunday of the month'],
    ['0 0 * * FRI#2', 'At 00:00, on the second Friday of the month'],
    ['0 0 * * 5-7', 'At 00:00, Friday through Sunday'],
    ['0 0 * * SAT,SUN', 'At 00:00, only on Saturday and Sunday'],
    ['0 0 * * */2', 'At 00:00, only on Tuesday, Thursday, Saturday, and Sunday'],
    // What says “every 45 minutes” elsewhere is 15 and 45 minutes in turn.
    ['*/45 * * * *', 'At 0 and 45 minutes past the hour'],
    ['*/60 * * * *', 'Every hour'],
    ['0 */24 * * *', 'At 00:00'],
    ['0 0 1 */5 *', 'At 00:00, on day 1 of the month, only in January, June, and November'],
    // Either day field is enough, unless + says otherwise.
    ['0 9 1-7 * MON', 'At 09:00, on days 1 through 7 of the month, or on Monday'],
    ['0 9 1-7 * +MON', 'At 09:00, on days 1 through 7 of the month, only on Monday'],
    ['0 9 L * MON-FRI', 'At 09:00, on the last day of the month, or on Monday through Friday'],
    ['0 9 29 FEB MON', 'At 09:00, only in February: on day 29 of the month, or on Monday'],
    ['0 9 1 * 5L', 'At 09:00, on day 1 of the month, or on the last Friday of the month'],
    ['0 9 13 * +5#2', 'At 09:00, on day 13 of the month, only if it is the second Friday of the month'],
    ['0 9 13 * +1,5#2', 'At 09:00, on day 13 of the month, only if it is a Monday or the second Friday of the month'],
    ['0 9 * * MON,FRI#2', 'At 09:00, on every Monday and on the second Friday of the month'],
    // All days of one field are all days, since one field is enough.
    ['0 9 1-31 * MON', 'At 09:00'],
    ['0 9 1 * 0-6', 'At 09:00'],
    ['0 9 1-31 * +MON', 'At 09:00, only on Monday'],
    [
      '*/7 */7 */7 * *',
      'Every 7 minutes from 0 through 56 past the hour, in the hours that begin at 00:00, 07:00, 14:00, and 21:00, ' +
        'on days 1, 8, 15, 22, and 29 of the month',
    ],
    ['0 9-17 * * *', 'Every hour, from 09:00 through 17:00'],
    ['30 */2 * * *', 'Every 2 hours, from 00:30 through 22:30'],
    ['* 9,17 * * *', 'Every minute, between 09:00 and 09:59 and between 17:00 and 17:59'],
    ['*/10 0 9 * * *', 'Every 10 seconds, in minute 0 of the hour, between 09:00 and 09:59'],
    ['30 0 9 * * *', 'At 09:00:30'],
    ['1 * * * *', 'At 1 minute past the hour'],
    ['0 0,30 5-20,22 * * *', 'Every 30 minutes, between 05:00 and 20:59 and between 22:00 and 22:59'],
    ['0 9 * * FRI,SAT,SUN,MON', 'At 09:00, Friday through Monday'],
    ['0 9 1 NOV-DEC,JAN *', 'At 09:00, on day 1 of the month, November through January'],
  ])('%s: %s', (expression, words) => {
    expect(describeCron(expression, 'nightly-report')).toBe(words);
  });

  it.each([
    ['H H * * *', 'At 08:35'],
    ['? ? * * *', 'At 08:35'],
    ['H/15 * * * *', 'At 5, 20, 35, and 50 minutes past the hour'],
    ['0 0 H * *', 'At 00:00, on day 1 of the month'],
  ])('tells what firelock picked: %s: %s', (expression, words) => {
    expect(describeCron(expression, 'nightly-report')).toBe(words);
  });

  it('is refused with the same words as its fire times', () => {
    expect(() => describeCron('60 * * * *', '')).toThrow(CronError);
  });

  it('exists for everything that is accepted', () => {
    const seconds = ['', '0 ', '*/7 ', 'H ', '5-50/9 '];
    const minutes = ['*', '0', '*/45', 'H/7', '1,2,3,40-50', '0-59'];
    const hours = ['*', '0', '*/5', '22-23,0-2', '1-23/2', 'H(2-5)'];
    const days = ['*', '1-31', 'L', 'LW', '1W', '31W,L,2-9/3', 'H', '*/31'];
    const months = ['*', 'FEB', '*/5', '1-12', 'JAN-MAR,DEC'];
    const weekdays = ['*', '+MON', '0-7', '5L,5#2', '+1-5,6L', 'SUN-SUN', '7#5', '*/3'];
    let count = 0;
    const all = [seconds, minutes, hours, days, months, weekdays].map((texts) => texts.length);
    for (let index = 0; index < all.reduce((one, other) => one * other); index += 7) {
      let left = index;
      const [second, ...fields] = [seconds, minutes, hours, days, months, weekdays].map((texts) => {
        const text = texts[left % texts.length] ?? '';
        left = Math.floor(left / texts.length);
        return text;
      });
      const words = describeCron(`${second}${fields.join(' ')}`, 'any');
      expect(words).not.toMatch(/undefined|NaN|null/);
      count += 1;
    }
    expect(count).toBeGreaterThan(5000);
  });
});

describe('several expressions in plain English', () => {
  it.each([
    [['0 9 * * MON-FRI', '0 11 * * SAT'], 'At 09:00, Monday through Friday; and at 11:00, only on Saturday'],
    [['@daily', '*/15 * * * *', '30 12 1 * *'], 'At 00:00; every 15 minutes; and at 12:30, on day 1 of the month'],
    [['H 3 * * *', '0 * * * *'], 'At 03:00; and every hour'],
  ])('%j: %s', (cron, words) => {
    expect(describeCron(cron, 'job')).toBe(words);
  });

  it('are each described as they would be alone', () => {
    const cron = ['0 9 * * MON-FRI', '5-9 * * * *', '0 0 L * *', '*/7 22-23,0-2 * * +SUN#2'];
    const alone = cron.map((one) => describeCron(one, 'job').toLowerCase());
    expect(describeCron(cron, 'job').toLowerCase().replace('; and ', '; ').split('; ')).toEqual(alone);
  });
});

describe('an interval in plain English', () => {
  it.each([
    [1, 'Every second'],
    [60, 'Every minute'],
    [90, 'Every 90 seconds'],
    [150, 'Every 2 minutes 30 seconds'],
    [300, 'Every 5 minutes'],
    [3600, 'Every hour'],
    [5400, 'Every 90 minutes'],
    [7200, 'Every 2 hours'],
    [7260, 'Every 2 hours 1 minute'],
    [86_400, 'Every day'],
    [604_800, 'Every 7 days'],
    [31_622_400, 'Every 366 days'],
    [90_061, 'Every 1 day 1 hour 1 minute 1 second'],
  ])('of %d seconds: %s', (seconds, words) => {
    expect(describeInterval(seconds)).toBe(words);
  });
});
