import { expect, it } from 'vitest';
import { daysOfPattern, nextDay } from '../../../src/core/cron/cron-wall.ts';
import { everyDay } from '../../../src/core/cron/day-pattern.ts';
import { exclusionOf } from '../../../src/core/exclusions/exclusion.ts';
import { pickRule } from '../../../src/core/days/pick-days.ts';
import { zoneOffsets } from '../../../src/core/zones/zone-offsets.ts';
import { DEFAULT_TIMING } from '../../../src/core/timing/timing.ts';
import type { DayNumber } from '../../../src/core/instant.ts';

const DAY: DayNumber = 20_000;
const ALL_MONTHS = 2 ** 12 - 1;

it('the days up to the next one that a rule keeps are searched once, whichever of them is asked about', () => {
  const asked: DayNumber[] = [];
  const firstFrom = (day: DayNumber) => {
    asked.push(day);
    return day <= DAY + 40 ? DAY + 40 : null;
  };
  const days = daysOfPattern(everyDay, ALL_MONTHS, { firstFrom });
  const found = (from: number, count: number) =>
    Array.from({ length: count }, (_, index) => nextDay(days, from + index));
  expect(found(DAY, 41)).toEqual(Array.from({ length: 41 }, () => DAY + 40));
  expect(found(DAY + 41, 100)).toEqual(Array.from({ length: 100 }, () => null));
  expect(asked).toEqual([DAY, DAY + 40, DAY + 41]);
  // What lies before is searched anew.
  expect([nextDay(days, DAY - 1), nextDay(days, DAY)]).toEqual([DAY + 40, DAY + 40]);
  expect(asked).toEqual([DAY, DAY + 40, DAY + 41, DAY - 1, DAY + 40]);
});

it('a place that no period has is searched until the end of all years once, however many expressions ask', () => {
  const exclude = { dates: ['2026-12-24'], calendars: [] };
  const versions = exclusionOf({ ...DEFAULT_TIMING, exclude }, new Map())?.versions;
  if (!versions) throw new Error('nothing is excluded');
  let searched = 0;
  const nextCandidate = (day: DayNumber) => {
    searched += 1;
    return day;
  };
  const pick = { of: 'week', nth: [10] } as const;
  const rule = pickRule({ pick, zone: zoneOffsets('UTC'), versions, firstVersion: 0, nextCandidate }, 'a');
  expect(rule.firstFrom(DAY)).toBeNull();
  const once = searched;
  expect(once).toBeGreaterThan(1_000);
  expect([1, 2, 3].map((days) => rule.firstFrom(DAY + days))).toEqual([null, null, null]);
  expect(searched).toBe(once);
});
