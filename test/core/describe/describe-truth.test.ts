import { describe, expect, it } from 'vitest';
import { parseCron, valuesOf } from '../../../src/core/cron/cron-parse.ts';
import { HOUR, MINUTE, SECOND } from '../../../src/core/cron/cron-fields.ts';
import { nextDay, localTimesOf } from '../../../src/core/cron/cron-wall.ts';
import { describeCron } from '../../../src/core/describe/describe.ts';
import { LONG } from '../../support/runner/long.ts';
import { readWords, type ReadTiming } from './read-words.ts';

const SIXTIETHS = [
  ...['*', '0', '1', '7', '0,30', '15,45', '*/5', '*/7', '*/45', '5-50/9', '3-5', '58-59', '1-59/2'],
  ...['1,2,3,40-50', '0-59', '0-30', '0,1,2,3,5', 'H', 'H/7', 'H(3-9)/2', '*/60'],
];
const HOURS = [
  ...['*', '0', '9', '9,17', '9-17', '9-17/2', '*/2', '*/3', '*/5', '*/7', '*/12', '0-22', '22-23,0-2'],
  ...['0,3,5-7,9,22', '1-23/2', '0-23', 'H', '9,10,11,15', '1,2,3,5,6,7,8,9', '*/24'],
];
const DATES = [
  ...['*', '1', '1,15', '1-7', '*/7', '*/2', '1-31', 'L', 'LW', '15W', '1W,31W', 'L,3-5,15W,1', '31', '*/1'],
  ...['2-30/2', 'H', '28-31', 'L,L', '1-31,L'],
];
/** A prime number of them, so that all come together with all others. */
const MONTHS = '* FEB FEB-APR 1,6 */3 NOV-DEC,JAN-FEB 1-12 1,12 JAN-MAR,JUL */5 5'.split(' ');
const WEEKDAYS = [
  ...['*', 'MON', 'MON-FRI', 'SAT,SUN', '0-6', '*/2', '5-7', 'SUN-THU', 'FRI#2', 'MONL', 'MON,FRI#2', '*/1'],
  ...['FRI-SAT,SUN-MON', '1,3,5', 'FRI#1,FRI#3,SUNL', 'FRI,FRI#2', '1-3,5,6L', 'SUN#5', '7', 'MON-SAT,0#1'],
];

const DAY_MS = 86_400_000;
/** Two years, one of them a leap year, in which February has every kind of first day but few. */
const DAYS = Array.from({ length: 731 }, (_, index) => Date.UTC(2027, 0, 1) / DAY_MS + index);
const ID = 'nightly-report';

function timesOf({ seconds, minutes, hours, times }: Omit<ReadTiming, 'onDay'>): string {
  const two = (value: number): string => String(value).padStart(2, '0');
  if (times === null) return JSON.stringify([seconds, minutes, hours].map((set) => set.toSorted(byValue)));
  const each = hours.flatMap((hour) =>
    minutes.flatMap((minute) => seconds.map((second) => [hour, minute, second].map(two).join(':'))),
  );
  return JSON.stringify((each.length > 0 ? each : times).toSorted());
}

const byValue = (one: number, other: number): number => one - other;

/** Where every day is meant, no more of them are needed to see it. */
const FEW_DAYS = DAYS.filter((_, index) => index % 30 === 0);

/** Null: what is told is what fires. */
function lieOf(expression: string, among: readonly number[]): string | null {
  const parsed = parseCron(expression, ID);
  const words = describeCron(expression, ID);
  const read = readWords(words);
  const truth = {
    seconds: valuesOf(SECOND, parsed.second),
    minutes: valuesOf(MINUTE, parsed.minute),
    hours: valuesOf(HOUR, parsed.hour),
    times: read.times,
  };
  if (timesOf(read) !== timesOf(truth)) return `${expression}: “${words}”`;
  const { days } = localTimesOf(parsed);
  let next = nextDay(days, among[0] ?? NaN);
  const wrong = among.find((day) => {
    if (next !== null && next < day) next = nextDay(days, day);
    return (next === day) !== read.onDay(new Date(day * DAY_MS));
  });
  if (wrong === undefined) return null;
  return `${expression}: “${words}” on ${new Date(wrong * DAY_MS).toISOString().slice(0, 10)}`;
}

describe('a description, read back by a program that sees only the words, gives the same fires', () => {
  it('at all kinds of times', () => {
    const expressions = ['', ...SIXTIETHS].flatMap((second) =>
      SIXTIETHS.flatMap((minute) => HOURS.map((hour) => `${second} ${minute} ${hour} * * *`.trim())),
    );
    expect(expressions).toHaveLength(22 * 21 * 20);
    const lies = expressions.map((expression) => lieOf(expression, FEW_DAYS));
    expect(lies.filter((lie) => lie !== null)).toEqual([]);
  });

  describe('on all kinds of days, with one day field and with both, when either or both of them must match', () => {
    const pairs = DATES.flatMap((date) => WEEKDAYS.map((weekday) => ({ date, weekday })));
    const expressions = pairs.flatMap(({ date, weekday }, index) => [
      `0 9 ${date} ${MONTHS[index % MONTHS.length]} ${weekday}`,
      `0 9 ${date} ${MONTHS[(index * 3 + 1) % MONTHS.length]} +${weekday}`,
      `0 9 ${date} * ${weekday}`,
    ]);
    const liesOf = (some: readonly string[]) =>
      some.map((expression) => lieOf(expression, DAYS)).filter((lie) => lie !== null);

    it('in a fifth of the combinations', () => {
      expect(liesOf(expressions.filter((_, index) => index % 5 === 0))).toEqual([]);
    });

    it('in all of them', { tags: [LONG] }, () => {
      expect(expressions).toHaveLength(19 * 20 * 3);
      expect(liesOf(expressions)).toEqual([]);
    });
  });
});
