import { describe, expect, it } from 'vitest';
import { fireTimes } from '../../../src/core/time/fire-times.ts';
import { LONG } from '../../support/runner/long.ts';
import { type DayCase, type ExpectedFire, walkDates } from './dates-oracle.ts';
import { calendarsOfDays, dayCaseNear, timingOfDays } from './day-cases.ts';
import { casesOf, shardsOf } from './depth.ts';
import { type Triple, lists, triples } from './triples.ts';

const SHARDS = 20;
const PER_SHARD = 2600;
const LISTS_PER_SHARD = 100;
const FEW = casesOf(200);
const FIRES = 4;
const WALKED_DAYS = 500;
const shards = shardsOf(SHARDS);

const UTC: DayCase = {
  ...{ expressions: ['0 9 * * *'], zone: 'UTC', from: Date.parse('2026-12-20T00:00Z'), since: 0 },
  ...{ dates: [], weekdays: [], versions: [], every: null, pick: null, onExcluded: 'skip' },
};

describe('the oracle, which walks dates,', () => {
  // Each can be checked against a calendar.
  it.each<[Partial<DayCase>, string[]]>([
    [{ weekdays: ['sat', 'sun'], pick: { of: 'month', nth: [-1] } }, ['2026-12-31T09', '2027-01-29T09']],
    [
      { expressions: ['0 9 25 12 *'], dates: ['2026-12-25'], weekdays: ['sat', 'sun'], onExcluded: 'next' },
      ['2026-12-28T09', '2027-12-27T09'],
    ],
    [
      {
        expressions: ['0 9 25 12 *'],
        dates: ['2026-12-25'],
        weekdays: ['sat', 'sun'],
        onExcluded: 'previous',
      },
      ['2026-12-24T09', '2027-12-24T09'],
    ],
    [
      { expressions: ['0 9 * * MON'], every: { n: 2, unit: 'week', from: '2026-12-23' } },
      ['2027-01-04T09', '2027-01-18T09'],
    ],
    [
      {
        expressions: ['30 2 * * SUN'],
        zone: 'Europe/Berlin',
        from: Date.parse('2027-03-22T00:00Z'),
        onExcluded: 'next',
      },
      ['2027-03-28T01', '2027-04-04T00'],
    ],
  ])('finds the fires of %o', (given, fires) => {
    const found = walkDates({ ...UTC, ...given }, fires.length, 800);
    expect(found.map(({ at }) => new Date(at).toISOString().slice(0, 13))).toEqual(fires);
  });
});

describe('rules of days make a schedule fire when, and only when, a walk over the dates says so', () => {
  const isOfThisCentury = ({ from }: Triple) => from > Date.UTC(2000, 6, 1);
  const cases = (some: Triple[]) => some.filter(isOfThisCentury).map(dayCaseNear);
  const holdsFor = (some: DayCase[]) => {
    const different = some.flatMap(difference);
    expect(different.slice(0, 20).join('\n'), `${different.length} of ${some.length} cases differ`).toBe('');
  };

  it(`in the first ${FEW} random cases around changes of the clocks, and around edits of two calendars`, () => {
    holdsFor(cases(triples(0, FEW)));
  });

  it.each(shards)(`in each of ${PER_SHARD} (part %d of ${SHARDS})`, { tags: [LONG] }, (shard) => {
    holdsFor(cases(triples(shard, PER_SHARD)));
  });

  it.each(shards)(
    `with several expressions, in each of ${LISTS_PER_SHARD} (part %d of ${SHARDS})`,
    { tags: [LONG] },
    (shard) => {
      holdsFor(cases(lists(shard, LISTS_PER_SHARD)));
    },
  );
});

function difference(one: DayCase): string[] {
  const expected = walkDates(one, FIRES, WALKED_DAYS);
  const got = ask(one);
  const horizon = one.from + (WALKED_DAYS - 70) * 86_400_000;
  const compared = got.filter(({ at }) => at < horizon).slice(0, FIRES);
  const [shown, wanted] = [compared, expected.filter(({ at }) => at < horizon)].map(inText);
  return shown === wanted ? [] : [`${JSON.stringify(one)}: expected ${wanted}; got ${shown}`];
}

function ask(one: DayCase): ExpectedFire[] {
  const times = fireTimes(timingOfDays(one), { id: '', createdAt: one.since }, calendarsOfDays(one));
  const found: ExpectedFire[] = [];
  for (let at = times.next(one.from); at !== null && found.length < FIRES; at = times.next(at)) {
    found.push({ at, from: times.moveOf(at)?.from ?? null });
    expect(times.excludedBy(at)).toBeNull();
  }
  return found;
}

function inText(fires: readonly ExpectedFire[]): string {
  return fires.map(({ at, from }) => new Date(at).toISOString() + (from === null ? '' : ` (${from})`)).join(' ');
}
