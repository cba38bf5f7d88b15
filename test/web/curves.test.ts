import { expect, it } from 'vitest';
import { timeTicks, valueTicks } from '../../web/src/parts/curves/axes.ts';
import { barsOf, daysOf, herdsOf } from '../../web/src/pages/load/counts.ts';

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
  expect(inIndia.map((at) => new Date(at * 1000).toISOString().slice(11, 16))).toEqual(['12:30', '13:30', '14:30']);
  expect(timeTicks(noon, noon + 3600, 7, 0)).toHaveLength(7);
  expect(timeTicks(noon, noon, 5, 0)).toEqual([noon]);
  expect(timeTicks(noon, noon + 40 * 365 * 86_400, 3, 0).length).toBeLessThanOrEqual(3);
});

const at = (time: string) => `2031-01-01T${time}.000Z`;

it('minutes add up to bars, including bars without fires', () => {
  const items = [
    { at: at('00:00:00'), fires: 2 },
    { at: at('00:14:00'), fires: 3 },
    { at: at('00:31:00'), fires: 1 },
  ];
  const bars = barsOf(items, Date.parse(at('00:00:00')), 1, 900_000);
  expect(bars.map(({ fires }) => fires)).toEqual([5, 0, 1, 0, 0]);
  expect(bars[2]?.from).toBe(Date.parse(at('00:30:00')));
});

it('a herd is a minute with far more fires than the others', () => {
  const calm = [...Array(20).keys()].map((minute) => ({ at: at(`01:${10 + minute}:00`), fires: 12 }));
  expect(herdsOf(calm)).toEqual([]);
  const herd = { at: at('00:00:00'), fires: 1200 };
  expect(herdsOf([...calm, herd])).toEqual([herd]);
  expect(herdsOf([herd])).toEqual([herd]);
  expect(herdsOf([{ at: at('00:00:00'), fires: 3 }])).toEqual([]);
});

it('an hour that the clock shows twice counts both, and hours outside of the period are empty', () => {
  const bars = [0, 1, 2].map((hour) => ({ from: hour, to: hour + 1, fires: 5 }));
  const [day] = daysOf(bars, { dayOf: () => 'a', hourOf: (from) => Math.min(from, 1) });
  expect(day?.hours.slice(0, 3)).toEqual([5, 10, null]);
});
