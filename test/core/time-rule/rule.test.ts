import { describe, expect, it } from 'vitest';
import { LONG } from '../../support/runner/long.ts';
import { fireTimes } from '../../../src/core/time/fire-times.ts';
import { cronTimes } from '../../../src/core/cron/cron.ts';
import { casesOf, shardsOf } from './depth.ts';
import { type Excluding, calendarsOf, exclusionNear, timingOf } from './exclusions.ts';
import { expectedFires } from './oracle.ts';
import { type Triple, lists, triples } from './triples.ts';
import { recentTransitions } from './zones.ts';

const SHARDS = 10;
const TRIPLES_PER_SHARD = 6000;
/** Done in a second or two. */
const FEW = casesOf(600);
const LISTS_PER_SHARD = 1500;
const FEW_LISTS = casesOf(60);
const FIRES = 3;
const LIMITS = { days: 1500, walkedDays: 16 };
const shards = shardsOf(SHARDS);

describe('the oracle, which walks the minutes of a wall clock,', () => {
  // Each can be checked against a calendar: the last Sundays of March and October, and a date that Samoa left out.
  it.each([
    ['30 2 * * *', 'Europe/Berlin', '2027-03-27T12:00Z', ['2027-03-28T01:00Z', '2027-03-29T00:30Z']],
    ['30 * * * *', 'Europe/Berlin', '2027-03-28T00:00Z', ['2027-03-28T00:30Z', '2027-03-28T01:30Z']],
    ['30 2 * * *', 'Europe/Berlin', '2027-10-30T12:00Z', ['2027-10-31T00:30Z', '2027-11-01T01:30Z']],
    ['30 * * * *', 'Europe/Berlin', '2027-10-31T00:00Z', ['2027-10-31T00:30Z', '2027-10-31T01:30Z']],
    ['0 12 * * *', 'Pacific/Apia', '2011-12-29T12:00Z', ['2011-12-29T22:00Z', '2011-12-30T22:00Z']],
    ['15 23 * * SAT', 'America/Nuuk', '2027-03-27T12:00Z', ['2027-03-28T01:00Z', '2027-04-04T00:15Z']],
    ['0 0 30 * +SAT', 'UTC', '2026-11-20T00:00Z', ['2027-01-30T00:00Z', '2027-10-30T00:00Z']],
  ])('finds %s in %s after %s', (expression, zone, from, fires) => {
    const found = expectedFires(expression, zone, Date.parse(from), fires.length, LIMITS);
    expect(found.fires).toEqual(fires.map((fire) => Date.parse(fire)));
  });

  it('covers every zone that changed its clocks in these years', () => {
    const changing = [...recentTransitions()].filter(([, transitions]) => transitions.length > 0);
    const asked = new Set(triples(0, TRIPLES_PER_SHARD).map(({ zone }) => zone));
    expect(changing.length).toBeGreaterThan(100);
    expect(changing.map(([zone]) => zone).filter((zone) => !asked.has(zone))).toEqual([]);
  });
});

describe('a cron expression fires when, and only when, its zone’s wall clock says so', () => {
  const holdsFor = (cases: Triple[]) => {
    const different = cases.flatMap(difference);
    expect(different.slice(0, 20).join('\n'), `${different.length} cases differ`).toBe('');
  };

  it(`in the first ${FEW} random cases around changes of the clocks`, () => {
    holdsFor(triples(0, FEW));
  });

  it(`or one of several does, in ${FEW_LISTS} random lists`, () => {
    holdsFor(lists(0, FEW_LISTS));
  });

  it.each(shards)(
    `or one of several does, in ${LISTS_PER_SHARD} random lists (part %d of ${SHARDS})`,
    { tags: [LONG] },
    (shard) => {
      holdsFor(lists(shard, LISTS_PER_SHARD));
    },
  );

  it.each(shards)(`in each of ${TRIPLES_PER_SHARD} of them (part %d of ${SHARDS})`, { tags: [LONG] }, (shard) => {
    holdsFor(triples(shard, TRIPLES_PER_SHARD));
  });
});

describe('a cron expression with excluded days fires when, and only when, the wall clock shows a day that is not excluded', () => {
  const FEW_EXCLUDING = casesOf(300);
  const holdsFor = (cases: Excluding[]) => {
    const different = cases.flatMap(differenceExcluding);
    expect(different.slice(0, 20).join('\n'), `${different.length} cases differ`).toBe('');
  };
  // Excluded days lie between 2000 and 2100.
  const isOfThisCentury = ({ from }: Triple) => from > Date.UTC(2000, 0, 15);
  const cases = (shard: number, count: number) => triples(shard, count).filter(isOfThisCentury).map(exclusionNear);

  it(`in the first ${FEW_EXCLUDING} random cases around changes of the clocks, and around edits of two calendars`, () => {
    const asked = cases(0, FEW_EXCLUDING);
    holdsFor(asked);
    // It would also hold if nothing were excluded.
    const isFelt = (one: Excluding) => one.expected.join() !== one.expectedOnAnyDay.join();
    expect(asked.filter(isFelt).length).toBeGreaterThan(FEW_EXCLUDING / 4);
  });

  it.each(shards)(`in each of 3000 of them (part %d of ${SHARDS})`, { tags: [LONG] }, (shard) => {
    holdsFor(cases(shard, 3000));
  });
});

function differenceExcluding(one: Excluding): string[] {
  const { triple, expected, horizon } = one;
  const times = fireTimes(timingOf(one), { id: '', createdAt: 0 }, calendarsOf(one));
  const got: (number | null)[] = [];
  for (let after: number | null = triple.from; got.length < FIRES && after !== null;) {
    after = times.next(after);
    got.push(after);
  }
  const inside = got.filter((fire) => fire !== null && fire < horizon).slice(0, expected.length);
  const isEarly =
    expected.length < FIRES && got.length > expected.length && (got[expected.length] ?? horizon) < horizon;
  const unexcluded = got.filter((fire) => fire !== null && times.excludedBy(fire) !== null);
  if (inside.join() === expected.join() && !isEarly && unexcluded.length === 0) return [];
  const text = JSON.stringify([triple, one.dates, one.versions]);
  return [`${text}: expected ${expected.map(textOf).join(' ')}; got ${got.map(textOf).join(' ')}`];
}

/** A line that says how the engine's fires differ from those expected; none where they agree. */
function difference({ expression, zone, from }: Triple): string[] {
  const { fires, notes, horizon } = expectedFires(expression, zone ?? 'UTC', from, FIRES, LIMITS);
  let got: (number | null)[] | string;
  try {
    got = ask(expression, zone, from, fires.length < FIRES ? fires.length + 1 : FIRES);
  } catch (error) {
    got = String(error);
  }
  const beyond = fires.length < FIRES && typeof got !== 'string' ? got.at(-1) : null;
  const inside = typeof got === 'string' ? got : got.slice(0, fires.length);
  const agrees = typeof inside !== 'string' && inside.every((fire, index) => fire === fires[index]);
  if (agrees && (beyond === null || beyond === undefined || beyond >= horizon)) {
    const times = cronTimes(expression, zone, '');
    return fires.flatMap((fire, index) => {
      const note = times.noteOf(fire);
      if (note === notes[index]) return [];
      const text = `expected the note ${notes[index] ?? 'null'}; got ${note ?? 'null'}`;
      return [`${JSON.stringify(expression)} in ${zone ?? 'null'} at ${new Date(fire).toISOString()}: ${text}`];
    });
  }
  const then = fires.length < FIRES ? `, then none before ${textOf(horizon)}` : '';
  const answer = typeof got === 'string' ? got : got.map(textOf).join(' ');
  return [
    `${JSON.stringify(expression)} in ${zone ?? 'null'} after ${textOf(from)}: expected ${fires.map(textOf).join(' ')}${then}; got ${answer}`,
  ];
}

function ask(expression: Triple['expression'], zone: string | null, from: number, count: number): (number | null)[] {
  const times = cronTimes(expression, zone, '');
  const found: (number | null)[] = [];
  let after: number | null = from;
  while (found.length < count && after !== null) {
    after = times.next(after);
    found.push(after);
  }
  return found;
}

function textOf(instant: number | null): string {
  return instant === null ? 'never' : new Date(instant).toISOString();
}
