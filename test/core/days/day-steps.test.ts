import { expect, it } from 'vitest';
import type { Timing } from '../../../src/core/timing/timing.ts';
import { fireTimes } from '../../../src/core/time/fire-times.ts';
import { timingOf } from '../time/support.ts';

/** Dates and hours of its first fires after the beginning of December 2026, which is a Tuesday. */
function fires(given: Partial<Timing>, count: number): string[] {
  const times = fireTimes(timingOf({ cron: '0 9 * * *', ...given }), { id: 'job', createdAt: 0 });
  const found: string[] = [];
  for (let at = times.next(Date.UTC(2026, 11, 1) - 1); at !== null && found.length < count; at = times.next(at))
    found.push(new Date(at).toISOString().slice(5, 13));
  return found;
}

const excluding = (...dates: string[]) => ({ dates, calendars: [] });
const WEEKEND = { dates: [], calendars: [], weekdays: ['sat', 'sun'] as const };

it('of several expressions, any selects a date, and a moved date has the times of those that select it', () => {
  const cron = ['0 9 * * FRI', '0 15 * * SAT'];
  const exclude = excluding('2026-12-05');
  expect(fires({ cron, exclude, onExcluded: 'next' }, 4)).toEqual(['12-04T09', '12-06T15', '12-11T09', '12-12T15']);
});

it('a period that is not a multiple of n after the first one has no date', () => {
  const every = { n: 2, unit: 'week', from: '2026-12-02' } as const;
  expect(fires({ cron: '0 9 * * WED', every }, 3)).toEqual(['12-02T09', '12-16T09', '12-30T09']);
});

it('and no date lies before the first one', () => {
  expect(fires({ every: { n: 2, unit: 'week', from: '2026-12-03' } }, 3)).toEqual(['12-03T09', '12-04T09', '12-05T09']);
});

it('excluded dates drop out before the others are numbered', () => {
  const exclude = { ...WEEKEND, dates: ['2026-12-01', '2026-12-31'] };
  const pick = { of: 'month', nth: [1, -1] } as const;
  expect(fires({ exclude, pick }, 3)).toEqual(['12-02T09', '12-30T09', '01-01T09']);
});

it('the n-th dates of a period stay, and a period that has fewer has none', () => {
  expect(fires({ cron: '0 9 * * FRI', pick: { of: 'month', nth: [5] } }, 2)).toEqual(['01-29T09', '04-30T09']);
  expect(fires({ cron: '0 9 * * FRI', pick: { of: 'month', nth: [-2] } }, 2)).toEqual(['12-18T09', '01-22T09']);
});

it('the fires of an excluded date go to the nearest one in their direction', () => {
  const given = { cron: '0 9 * * SUN', exclude: WEEKEND };
  expect(fires({ ...given, onExcluded: 'next' }, 2)).toEqual(['12-07T09', '12-14T09']);
  expect(fires({ ...given, onExcluded: 'previous' }, 2)).toEqual(['12-04T09', '12-11T09']);
});

it('fires that coincide are one', () => {
  const exclude = excluding('2026-12-03/2026-12-05');
  expect(fires({ exclude, onExcluded: 'next' }, 4)).toEqual(['12-01T09', '12-02T09', '12-06T09', '12-07T09']);
  expect(fires({ exclude, onExcluded: 'previous' }, 3)).toEqual(['12-01T09', '12-02T09', '12-06T09']);
});

it('fires go 31 days far, and no further', () => {
  const cron = '0 9 3,4 12 *';
  const next = fires({ cron, exclude: excluding('2026-12-01/2027-01-03'), onExcluded: 'next' }, 1);
  // Of the 4th: the 3rd would go 32 days.
  expect(next).toEqual(['01-04T09']);
  const none = fires({ cron: '0 9 3 12 *', exclude: excluding('2026-12-01/2027-01-03'), onExcluded: 'next' }, 1);
  expect(none).toEqual(['12-03T09']);
  const previous = fires({ cron: '0 9 1 1 *', exclude: excluding('2026-12-02/2027-01-01'), onExcluded: 'previous' }, 1);
  expect(previous).toEqual(['12-01T09']);
});
