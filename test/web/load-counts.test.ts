import { expect, it } from 'vitest';
import { barsOf, daysOf, herdsOf } from '../../web/src/pages/load/counts.ts';

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
