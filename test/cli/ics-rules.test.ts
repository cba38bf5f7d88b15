import { DateTime } from 'luxon';
import { expect, test } from 'vitest';
import { holidaysIn } from '../../src/cli/settings/ics/ics-calendar.ts';
import { type Random, createRandom } from '../chaos/random.ts';

const DAY_MS = 86_400_000;
const [FIRST, STARTS, LAST] = [DateTime.utc(2019, 1, 1), DateTime.utc(2020, 1, 1), DateTime.utc(2039, 12, 31)].map(
  (date) => date.toMillis() / DAY_MS,
) as [number, number, number];
const WEEKDAYS = ['MO', 'TU', 'WE', 'TH', 'FR', 'SA', 'SU'];

interface Rule {
  interval: number;
  /** The n-th (0: each) weekday, 1 … 7, of the month. */
  days: (readonly [nth: number, weekday: number])[];
  monthDays: number[];
  months: number[];
  count: number | null;
  until: DateTime | null;
}

function randomRule(random: Random): Rule {
  const pick = <T>(items: readonly T[]) => random.pick(items);
  const chance = (probability: number) => random.chance(probability);
  const whole = (from: number, to: number) => Math.floor(random.between(from, to + 1));
  const some = <T>(draw: () => T): T[] => Array.from({ length: whole(1, 3) }, draw);
  const hasDays = chance(0.5);
  const hasMonthDays = chance(hasDays ? 0.2 : 0.7);
  const isNumbered = !hasMonthDays && chance(0.7);
  const count = chance(0.2) ? whole(1, 12) : null;
  return {
    interval: chance(0.7) ? 1 : whole(2, 4),
    days: hasDays ? some(() => [isNumbered ? pick([1, 2, 3, 4, 5, -1, -2]) : 0, whole(1, 7)] as const) : [],
    monthDays: hasMonthDays ? some(() => (chance(0.3) ? whole(-4, -1) : whole(1, 31))) : [],
    months: hasDays || hasMonthDays || chance(0.3) ? some(() => whole(1, 12)) : [],
    count,
    until: count === null && chance(0.25) ? DateTime.utc(whole(2024, 2034), whole(1, 12), whole(1, 28)) : null,
  };
}

function textOf({ interval, days, monthDays, months, count, until }: Rule): string {
  const list = (name: string, values: readonly unknown[]) =>
    values.length === 0 ? '' : `;${name}=${values.join(',')}`;
  return [
    `FREQ=YEARLY;INTERVAL=${interval}`,
    list(
      'BYDAY',
      days.map(([nth, weekday]) => `${nth === 0 ? '' : nth}${WEEKDAYS[weekday - 1] ?? ''}`),
    ),
    list('BYMONTHDAY', monthDays),
    list('BYMONTH', months),
    list('COUNT', count === null ? [] : [count]),
    list('UNTIL', until === null ? [] : [until.toFormat('yyyyMMdd')]),
  ].join('');
}

interface Day {
  /** Since 1970. */
  number: number;
  year: number;
  month: number;
  day: number;
  weekday: number;
  daysInMonth: number;
  text: string;
}

/** Each day of the years that a rule may reach. */
const DAYS: readonly Day[] = Array.from({ length: LAST - FIRST + 1 }, (_, index) => {
  const date = DateTime.fromMillis((FIRST + index) * DAY_MS, { zone: 'utc' });
  const { year, month, day, weekday, daysInMonth } = date;
  return {
    number: FIRST + index,
    year,
    month,
    day,
    weekday,
    daysInMonth: daysInMonth ?? 0,
    text: date.toISODate() ?? '',
  };
});

/** RFC 5545 §3.3.10, day by day. */
function walk(rule: Rule, start: Day): Day[] {
  const { count, until } = rule;
  return DAYS.filter((day) => (day.year - start.year) % rule.interval === 0 && isChosen(rule, start, day))
    .filter(({ number }) => number >= start.number)
    .slice(0, count ?? undefined)
    .filter(({ number }) => until === null || number * DAY_MS <= until.toMillis());
}

function isChosen({ days, monthDays, months }: Rule, start: Day, day: Day): boolean {
  if (!(months.length > 0 ? months : [start.month]).includes(day.month)) return false;
  const { daysInMonth } = day;
  const isMonthDay = monthDays.some((one) => day.day === (one > 0 ? one : daysInMonth + one + 1));
  const isDay = days.some(
    ([nth, weekday]) =>
      day.weekday === weekday &&
      (nth === 0 || nth === Math.ceil(day.day / 7) || -nth === Math.ceil((daysInMonth - day.day + 1) / 7)),
  );
  if (days.length > 0 || monthDays.length > 0)
    return (days.length === 0 || isDay) && (monthDays.length === 0 || isMonthDay);
  return day.day === start.day;
}

test('yearly rules choose the days that a walk over all days chooses', () => {
  const random = createRandom(5545, 'ics');
  const compared: string[] = [];
  while (compared.length < 250) {
    const rule = randomRule(random);
    const start = DAYS[STARTS - FIRST + Math.floor(random.between(0, 1500))];
    if (start === undefined) throw new Error('a start outside of the days');
    const days = walk(rule, start);
    // Where the first day is none of the rule's, it is not said whether COUNT counts it.
    if (days[0] !== start && rule.count !== null) continue;
    const wanted = [...new Set([start, ...days].map(({ text }) => text))];
    const text = [
      ...['BEGIN:VCALENDAR', 'BEGIN:VEVENT', `DTSTART;VALUE=DATE:${start.text.replaceAll('-', '')}`],
      ...[`RRULE:${textOf(rule)}`, 'END:VEVENT', 'END:VCALENDAR'],
    ].join('\r\n');
    const years = { first: start.number, last: LAST };
    compared.push(`${start.text} ${textOf(rule)}`);
    expect([compared.at(-1), holidaysIn(text, { file: 'r.ics', years }).dates]).toEqual([compared.at(-1), wanted]);
  }
});
