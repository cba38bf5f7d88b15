import { describe, expect, it } from 'vitest';
import { CronError, MAX_EXPRESSION_LENGTH, cronTimes } from '../../../src/core/cron/cron.ts';
import { firesAfter } from '../time/support.ts';

/** What is said of a refused expression; null: it is accepted. */
function refusalOf(expression: string): string | null {
  try {
    cronTimes(expression, null, 'nightly-report');
    return null;
  } catch (error) {
    if (error instanceof CronError) return error.message;
    throw error;
  }
}

const same = (one: string, other: string): void =>
  expect(firesAfter(one, null, '2026-01-01T00:00:00Z', 40)).toEqual(
    firesAfter(other, null, '2026-01-01T00:00:00Z', 40),
  );

describe('an expression', () => {
  it.each([
    ['@yearly', '0 0 1 1 *'],
    ['@annually', '0 0 1 1 *'],
    ['@monthly', '0 0 1 * *'],
    ['@weekly', '0 0 * * 0'],
    ['@Daily', '0 0 * * *'],
    [' @MIDNIGHT ', '0 0 * * *'],
    ['@hourly', '0 * * * *'],
    ['  0\t9  * *   1 ', '0 9 * * 1'],
    ['00 09 01 001 *', '0 9 1 1 *'],
    ['0 0 * jan-Mar,DEC mon,Fri', '0 0 * 1-3,12 1,5'],
    ['0 0 * * MON-5', '0 0 * * 1,2,3,4,5'],
    ['0 0 * * fril', '0 0 * * 5L'],
    ['0 0 * * Fri#02', '0 0 * * 5#2'],
    ['0 0 lw * *', '0 0 LW * *'],
    ['0 0 l,015w * *', '0 0 15W,L * *'],
    ['0 0 * * 7#1,0L', '0 0 * * 0#1,7L'],
    ['10-50/20 * * * *', '10,30,50 * * * *'],
    ['*/45 * * * *', '0,45 * * * *'],
    ['0-30/40 * * * *', '0 * * * *'],
    ['0 30 12 * * *', '30 12 * * *'],
    ['5,5,5-5,5 * * * *', '5 * * * *'],
  ])('%j means the same as %j', same);

  it('of 256 characters is read, a longer one is not', () => {
    const longest = `0 0 * * ${'1,'.repeat(123)}07`;
    expect(longest).toHaveLength(MAX_EXPRESSION_LENGTH);
    expect(refusalOf(longest)).toBeNull();
    expect(refusalOf(`${longest} `)).toBe('is longer than 256 characters');
    expect(refusalOf(' '.repeat(100_000))).toBe('is longer than 256 characters');
  });
});

describe('a refusal names the field, the column and the right spelling:', () => {
  it.each([
    // Numbers out of range
    ['60 * * * *', 'minute, column 1: “60”: must be in 0-59; write 0'],
    ['0 24 * * *', 'hour, column 3: “24”: must be in 0-23; write 0'],
    ['0 0 0 * *', 'day of month, column 5: “0”: must be in 1-31; the first is 1'],
    ['0 0 32 * *', 'day of month, column 5: “32”: must be in 1-31; the last day of any month is L'],
    ['0 0 * 13 *', 'month, column 7: “13”: must be in 1-12 or JAN-DEC'],
    ['0 0 * * 8', 'day of week, column 9: “8”: must be in 0-7 or SUN-SAT'],
    ['75 0 0 * * *', 'second, column 1: “75”: must be in 0-59'],
    // Steps and ranges
    ['5/15 * * * *', 'minute, column 1: “5/15”: a step needs a range; write 5-59/15'],
    ['0 0 * * MON/2', 'day of week, column 9: “MON/2”: a step needs a range; write MON-SAT/2'],
    ['0 0 1/2 * *', 'day of month, column 5: “1/2”: a step needs a range; write 1-31/2'],
    ['/5 * * * *', 'minute, column 1: “/5”: a step needs a range; write */5'],
    ['*/ * * * *', 'minute, column 1: “*/”: a step is missing after the /'],
    ['*/0 * * * *', 'minute, column 1: “*/0”: a step is at least 1'],
    ['*/90 * * * *', 'minute, column 1: “*/90”: a step is at most 60; for an interval use everySeconds: 5400'],
    [
      '*/100000000000000000000 * * * *',
      'a step is at most 60; for an interval use everySeconds, at most 31622400: 366 days',
    ],
    ['0 */8784 * * *', 'a step is at most 24; for an interval use everySeconds: 31622400'],
    ['0 */8785 * * *', 'a step is at most 24; for an interval use everySeconds, at most 31622400: 366 days'],
    ['*5 * * * *', 'minute, column 1: “*5”: write */5 for a step'],
    ['0-60 * * * *', 'minute, column 1: “0-60”: “60”: must be in 0-59'],
    ['1e1 * * * *', 'minute, column 1: “1e1”: not a number; must be in 0-59'],
    ['1-1e1 * * * *', 'minute, column 1: “1-1e1”: “1e1”: not a number; must be in 0-59'],
    ['0 0 * * noon', 'day of week, column 9: “noon”: neither a number nor a known name; must be in 0-7'],
    ['0 0 * * 20270', 'day of week, column 9: “20270”: must be in 0-7 or SUN-SAT'],
    ['0 0 */40 * *', 'day of month, column 5: “*/40”: a step is at most 31'],
    ['0 22-2 * * *', 'hour, column 3: “22-2”: a range goes upwards; write 22-23,0-2'],
    ['0 22-5/3 * * *', 'hour, column 3: “22-5/3”: a range goes upwards; write 22-23/3,1-5/3'],
    ['0 0 * * FRI-MON', 'day of week, column 9: “FRI-MON”: a range goes upwards; write FRI-SUN,MON'],
    ['0 0 * * 6-0', 'day of week, column 9: “6-0”: a range goes upwards; write 6-7'],
    ['0 0 * NOV-FEB *', 'month, column 7: “NOV-FEB”: a range goes upwards; write NOV-DEC,JAN-FEB'],
    ['5- * * * *', 'minute, column 1: “5-”: a range has two ends'],
    ['0~29 * * * *', 'minute, column 1: “0~29”: write H(0-29)'],
    // Lists and characters
    ['0 0 1,,5 * *', 'day of month, column 7: an item is empty'],
    ['0,5, * * * *', 'minute, column 5: an item is empty'],
    ['1* * * * * *', 'second, column 1: “1*” is not a value, a range or a step of this field (0-59)'],
    ['0 9–17 * * *', 'column 4: U+2013 is not an ASCII character; write -'],
    ['0 0 * *\u00a0*', 'column 8: U+00A0 does not separate fields; write a space'],
    ['0 0 * * *\n', 'column 10: U+000A does not separate fields; write a space'],
    // Names
    ['0 0 * * MONDAY', 'day of week, column 9: “MONDAY”: write MON; must be'],
    ['0 0 * JANFEB *', 'month, column 7: “JANFEB”: neither a number nor a known name; must be in 1-12 or JAN-DEC'],
    ['0 0 * MON *', 'month, column 7: “MON”: MON belongs to day of week; must be'],
    ['0 0 * * MON,XYZ', 'day of week, column 13: “XYZ”: neither a number nor a known name; must be in 0-7 or SUN-SAT'],
    // L, W, #
    ['0 0 L-3 * *', 'day of month, column 5: “L-3”: days cannot be counted from the end; write L for the last day'],
    ['0 0 5W-7 * *', 'day of month, column 5: “5W-7”: L and W go with no range and no step'],
    ['0 0 1,LW * *', 'day of month, column 7: “LW”: LW stands alone, not in a list'],
    ['0 0 W15 * *', 'day of month, column 5: “W15”: write 15W'],
    ['0 0 32W * *', 'day of month, column 5: “32W”: the day before W must be in 1-31'],
    ['0 0 5L * *', 'day of month, column 5: “5L”: a day with L belongs to day of week'],
    ['0 0 L5 * *', 'day of month, column 5: “L5”: a day with L belongs to day of week (5L: the last Friday)'],
    ['0 0 * * L5', 'day of week, column 9: “L5”: write 5L'],
    ['0 0 * * lFri', 'day of week, column 9: “lFri”: write FRIL'],
    ['L5 * * * *', 'minute, column 1: “L5”: L belongs to day of month (L) and day of week (5L)'],
    ['0 0 * * #2', 'day of week, column 9: “#2”: write 5#2 for the second Friday'],
    ['0 0 * * LW', 'day of week, column 9: “LW”: W belongs to day of month (15W, LW)'],
    ['0 0 * * L', 'day of week, column 9: “L”: write SAT, or 6L for the last Saturday of the month'],
    ['0 0 * * 15W', 'day of week, column 9: “15W”: W belongs to day of month (15W, LW)'],
    ['0 0 * * 5#6', 'day of week, column 9: “5#6”: write 5#2 for the second Friday'],
    ['0 0 * * FRI#L', 'day of week, column 9: “FRI#L”: write FRIL'],
    ['0 0 * * MON-FRI#2', 'day of week, column 9: “MON-FRI#2”: # goes with one day; write MON#2,…,FRI#2'],
    ['L * * * *', 'minute, column 1: “L”: L belongs to day of month (L) and day of week (5L)'],
    // ?, H and +
    ['0 0 ? * MON', 'day of month, column 5: “?”: write * for all, or H to have one picked'],
    ['0 0 12 * * ?', 'day of week, column 12: “?”: write * for all, or H to have one picked'],
    ['?/15 * * * *', 'minute, column 1: “?/15”: write H/15'],
    ['?5 * * * *', 'minute, column 1: “?5”: write H, H(0-59) or H/2'],
    ['H5 * * * *', 'minute, column 1: “H5”: write H, H(0-59) or H/2'],
    ['H(30-10) * * * *', 'minute, column 1: “H(30-10)”: write H, H(0-59) or H/2'],
    ['0 0 +15 * 6', 'day of month, column 5: “+15”: a + stands only before the whole day-of-week field'],
    ['0 0 1 * +FRI-MON', 'day of week, column 10: “FRI-MON”: a range goes upwards'],
    ['0 0 1 * +', 'day of week, column 9: “+” stands before days (+SAT), for AND: none follow'],
    // What belongs elsewhere
    ['0 0 1 1 * 2027', 'day of week, column 11: “2027”: there is no year field'],
    ['0 0 0 1 1 * 2027', 'column 13: there is no year field; leave it out (startAt and endAt bound a schedule)'],
    [
      'TZ=Europe/Berlin 0 9 * * *',
      'column 1: “TZ=Europe/Berlin”: the zone goes into the field timezone (“Europe/Berlin”)',
    ],
    ['CRON_TZ=UTC 0 9 * * *', 'column 1: “CRON_TZ=UTC”: the zone goes into the field timezone (“UTC”)'],
    ['@reboot', 'column 1: @reboot is not known'],
    ['@every 366d', '“@every 366d” is an interval; write everySeconds: 31622400'],
    ['@every 400d', 'an interval is at most 31622400 seconds: 366 days'],
    ['@every 999999999999d', 'an interval is at most 31622400 seconds: 366 days'],
    ['@every 100ms', 'is an interval: it is no number of whole seconds'],
    ['\u00a0@daily', 'column 1: U+00A0 does not separate fields; write a space'],
    ['constructor', 'this has 1'],
    ['@workdays', 'is not a nickname; known are @yearly'],
    ['0 10:00 * * *', 'hour, column 3: “10:00”: a time of day is two fields: minute 0, hour 10'],
    ['', 'must have 5 fields (minute, hour, day of month, month, day of week, or 6 with second first); this has 0'],
    ['* * * *', 'this has 4'],
    ['* * * * * * * *', 'this has 8'],
  ])('%j', (expression, message) => {
    expect(refusalOf(expression)).toContain(message);
  });

  it('each faulty field, by its first fault', () => {
    expect(refusalOf('60,61 9 0 * MON-FRI,8')).toBe(
      'minute, column 1: “60”: must be in 0-59; write 0; ' +
        'day of month, column 9: “0”: must be in 1-31; the first is 1; ' +
        'day of week, column 21: “8”: must be in 0-7 or SUN-SAT',
    );
  });

  it('the spellings that it proposes are accepted', () => {
    const refused = [
      '5/15 * * * *',
      '0 22-2 * * *',
      '0 22-5/3 * * *',
      '50-10/7 * * * *',
      '0 0 * * FRI-MON',
      '0 0 * * SAT-TUE',
      '0 0 * * 5-1',
      '0 0 * NOV-FEB *',
      '0 0 25-5 * *',
      '0 0 * * MON/2',
      '?/15 * * * *',
      '0~29 * * * *',
      '0 0 * * FRI#L',
      '0 0 * * L5',
      '0 0 * * lfri',
    ];
    for (const expression of refused) {
      const message = refusalOf(expression) ?? '';
      const proposal = /write (\S+)$/.exec(message)?.[1] ?? '';
      const item = /“(.+?)”/.exec(message)?.[1] ?? '';
      expect(proposal).not.toBe('');
      expect({ expression, refusal: refusalOf(expression.replace(item, proposal)) }).toEqual({
        expression,
        refusal: null,
      });
    }
  });

  it('quotes no more of it than a person can read', () => {
    expect(refusalOf('x'.repeat(200) + ' * * * *')?.length).toBeLessThan(100);
  });

  it('is always a CronError, whatever the characters', () => {
    const alphabet = '0159*/,-#+?HLW()@: MONFRIJANx%~';
    let seed = 1;
    const random = (count: number): number => (seed = (seed * 48_271) % 2_147_483_647) % count;
    for (let round = 0; round < 5000; round += 1) {
      const fields = Array.from({ length: 5 }, () =>
        Array.from({ length: 1 + random(5) }, () => alphabet[random(alphabet.length)]).join(''),
      );
      expect(refusalOf(fields.join(' '))).not.toBe('');
    }
  });
});
