import { type Timing, DEFAULT_TIMING } from '../../../src/core/timing/timing.ts';
import { type Calendars, daySetOfEntries } from '../../../src/core/exclusions/exclusion.ts';
import { type Random, createRandom } from '../../chaos/random.ts';
import { expectedFires } from './oracle.ts';
import type { Triple } from './triples.ts';

/** A schedule with excluded days of its own and of two calendars, and when it fires by a walk over the minutes. */
export interface Excluding {
  triple: Triple;
  dates: string[];
  /** Of each calendar: what it said from an instant on. */
  versions: { at: number; dates: string[] }[][];
  expected: number[];
  /** As if nothing were excluded. */
  expectedOnAnyDay: number[];
  horizon: number;
}

const DAY_MS = 86_400_000;
const FIRES = 3;
const LIMITS = { days: 1500, walkedDays: 16 };

/** The same for the same triple. The days and the edits lie near the instant that is asked about. */
export function exclusionNear(triple: Triple): Excluding {
  const random = createRandom(20270328, `exclusion ${JSON.stringify(triple)}`);
  const dates = entriesNear(random, triple.from, 3);
  const versions = [versionsNear(random, triple.from), versionsNear(random, triple.from)];
  const isExcluded = (fire: number, date: string) => excludes({ dates, versions }, fire, date);
  const { expression, zone, from } = triple;
  const walked = expectedFires(expression, zone ?? 'UTC', from, FIRES, LIMITS, isExcluded);
  const onAnyDay = expectedFires(expression, zone ?? 'UTC', from, FIRES, LIMITS);
  const { fires: expected, horizon } = walked;
  return { triple, dates, versions, expected, expectedOnAnyDay: onAnyDay.fires, horizon };
}

/** By comparing texts: the dates of ISO 8601 are in the order of the days. */
function excludes({ dates, versions }: Pick<Excluding, 'dates' | 'versions'>, fire: number, date: string): boolean {
  const inForce = versions.map((ofOne) => ofOne.filter(({ at }) => at < fire).at(-1)?.dates ?? []);
  return [...dates, ...inForce.flat()].some((entry) => {
    const [first = '', last = first] = entry.split('/');
    return first <= date && date <= last;
  });
}

export function timingOf({ triple, dates }: Excluding): Timing {
  const { expression: cron, zone: timezone } = triple;
  const exclude = { dates, calendars: ['first', 'second'] };
  return { ...DEFAULT_TIMING, cron, timezone, exclude, everySeconds: null, at: null, after: null };
}

export function calendarsOf({ versions }: Excluding): Calendars {
  return new Map(
    ['first', 'second'].map((id, index) => [
      id,
      {
        id,
        versions: (versions[index] ?? []).map(({ at, dates }, place) => ({
          version: place + 1,
          at,
          days: daySetOfEntries(dates),
        })),
      },
    ]),
  );
}

function versionsNear(random: Random, from: number): { at: number; dates: string[] }[] {
  const count = Math.floor(random.between(0, 4));
  const moments = Array.from({ length: count }, () => Math.round(from + random.between(-3, 3) * DAY_MS));
  // Often on a moment at which much fires.
  const edits = moments.map((at) => (random.chance(0.5) ? at - (at % 3_600_000) : at));
  return [...new Set(edits)].sort((a, b) => a - b).map((at) => ({ at, dates: entriesNear(random, from, 3) }));
}

function entriesNear(random: Random, from: number, most: number): string[] {
  return Array.from({ length: Math.floor(random.between(0, most + 1)) }, () => {
    const first = from + random.between(-2, 6) * DAY_MS;
    const date = dateOf(first);
    if (random.chance(0.5)) return date;
    return `${date}/${dateOf(first + Math.floor(random.between(0, random.chance(0.1) ? 500 : 5)) * DAY_MS)}`;
  });
}

function dateOf(at: number): string {
  return new Date(at).toISOString().slice(0, 10);
}
