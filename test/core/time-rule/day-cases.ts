import { type Calendars, daySetOfEntries } from '../../../src/core/exclusions/exclusion.ts';
import { type Timing, DEFAULT_TIMING, WEEKDAYS } from '../../../src/core/timing/timing.ts';
import { type Random, createRandom } from '../../chaos/random.ts';
import type { DayCase } from './dates-oracle.ts';
import { dateOf } from './walked-dates.ts';
import { select } from './expression.ts';
import type { Triple } from './triples.ts';

const DAY_MS = 86_400_000;

/** The same for the same triple. Excluded days, edits of calendars and the first date lie near the instant that is asked about. */
export function dayCaseNear({ expression, zone, from }: Triple): DayCase {
  const expressions = [expression].flat();
  const random = createRandom(20270328, `days ${JSON.stringify([expression, zone, from])}`);
  const isPeriodic = expressions.some((one) => select(one).periodic);
  const kind = isPeriodic
    ? random.pick(['every', 'pick'])
    : random.pick(['every', 'pick', 'next', 'previous', 'previous']);
  const alsoEvery = kind === 'every' || random.chance(0.2);
  return {
    ...{ expressions, zone: zone ?? 'UTC', from },
    since: random.chance(0.3) ? from + Math.round(random.between(-40, 40) * DAY_MS) : 0,
    dates: entriesNear(random, from, 4),
    weekdays: random.chance(0.5) ? random.pick([['sat', 'sun'], ['sun'], ['fri', 'sat'], [random.pick(WEEKDAYS)]]) : [],
    versions: [versionsNear(random, from), versionsNear(random, from)],
    every: alsoEvery ? everyNear(random, from) : null,
    pick: kind === 'pick' ? pickOf(random) : null,
    onExcluded: kind === 'next' || kind === 'previous' ? kind : 'skip',
  };
}

export function timingOfDays(one: DayCase): Timing {
  const { expressions, zone, dates, weekdays, every, pick, onExcluded } = one;
  const [first = '', ...others] = expressions;
  const named = WEEKDAYS.filter((day) => weekdays.includes(day));
  return {
    ...DEFAULT_TIMING,
    ...{ cron: others.length === 0 ? first : expressions, everySeconds: null, at: null, after: null },
    ...{ timezone: zone, every, pick, onExcluded },
    exclude: { dates, calendars: ['0', '1'], weekdays: named },
  };
}

export function calendarsOfDays({ versions }: DayCase): Calendars {
  return new Map(
    versions.map((ofOne, index) => [
      String(index),
      {
        id: String(index),
        versions: ofOne.map(({ at, dates }, place) => ({
          ...{ version: place + 1, at, days: daySetOfEntries(dates) },
        })),
      },
    ]),
  );
}

function everyNear(random: Random, from: number): DayCase['every'] {
  const unit = random.pick(['day', 'week', 'month'] as const);
  return {
    n: random.pick([2, 2, 3, 4, 5, 14]),
    unit,
    from: near(random, from, random.chance(0.8) ? -200 : -10, 30),
  };
}

function pickOf(random: Random): DayCase['pick'] {
  const of = random.pick(['week', 'month', 'quarter', 'year'] as const);
  const nth = random.pick([[1], [-1], [2], [-2], [1, -1], [3, -2], [5], [-6], [10, 11]]);
  return { of, nth };
}

function versionsNear(random: Random, from: number): DayCase['versions'][number] {
  const count = random.chance(0.4) ? 0 : Math.floor(random.between(1, 5));
  const moments = Array.from({ length: count }, () => Math.round(from + random.between(-25, 25) * DAY_MS));
  // Often on a moment at which much fires, or a day begins.
  const edits = moments.map((at) => (random.chance(0.5) ? at - (at % 3_600_000) : at));
  return [...new Set(edits)].sort((a, b) => a - b).map((at) => ({ at, dates: entriesNear(random, from, 5) }));
}

function entriesNear(random: Random, from: number, most: number): string[] {
  return Array.from({ length: Math.floor(random.between(0, most + 1)) }, () => {
    const first = Math.floor((from + random.between(-20, 40) * DAY_MS) / DAY_MS);
    if (random.chance(0.5)) return dateOf(first);
    return `${dateOf(first)}/${dateOf(first + Math.floor(random.between(0, random.chance(0.1) ? 60 : 6)))}`;
  });
}

function near(random: Random, from: number, least: number, most: number): string {
  return dateOf(Math.floor((from + random.between(least, most) * DAY_MS) / DAY_MS));
}
