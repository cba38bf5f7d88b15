import { expect, it } from 'vitest';
import { timeTicks, valueTicks } from '../../web/src/parts/curves/axes.ts';

it('the axis of values has a few round ones, from nothing to the highest or beyond', () => {
  expect(valueTicks(0, false)).toEqual([0, 0.2, 0.4, 0.6000000000000001, 0.8, 1]);
  expect(valueTicks(3, true)).toEqual([0, 1, 2, 3]);
  expect(valueTicks(0, true)).toEqual([0, 1]);
  expect(valueTicks(1234, false)).toEqual([0, 500, 1000, 1500]);
  for (const highest of [0.003, 7, 19, 99.5, 5000, 1e9]) {
    const ticks = valueTicks(highest, false);
    expect(ticks.length).toBeLessThanOrEqual(6);
    expect(ticks.at(-1)).toBeGreaterThanOrEqual(highest * 0.999);
  }
});

it('the axis of time has round moments of the clock that it is drawn for, as many as there is room for', () => {
  const noon = Date.UTC(2030, 5, 1, 12) / 1000;
  const inIndia = timeTicks(noon, noon + 3 * 3600, 4, 5.5 * 3600);
  expect(inIndia.map((at) => new Date(at * 1000).toISOString().slice(11, 16))).toEqual([
    '12:30',
    '13:30',
    '14:30',
  ]);
  expect(timeTicks(noon, noon + 3600, 7, 0)).toHaveLength(7);
  expect(timeTicks(noon, noon, 5, 0)).toEqual([noon]);
  expect(timeTicks(noon, noon + 40 * 365 * 86_400, 3, 0).length).toBeLessThanOrEqual(3);
});
