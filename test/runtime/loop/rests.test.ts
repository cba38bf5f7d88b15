import { expect, it } from 'vitest';
import { createRests } from '../../../src/runtime/loop/rests.ts';

const MINUTE_MS = 60_000;

function resting() {
  const clock = { now: 0, monotonic: () => clock.now };
  const told: number[] = [];
  const emit = (event: object) => {
    if ('count' in event) told.push(event.count as number);
  };
  const rests = createRests({ clock, events: { emit }, loop: 'test' });
  return { clock, told, rests };
}

it('a row that is set aside rests for a minute, and counts as suspect for as long again', () => {
  const { clock, rests } = resting();
  rests.add('a');
  expect(rests.keys()).toEqual(['a']);
  clock.now = MINUTE_MS;
  expect(rests.keys()).toEqual([]);
  expect(rests.wasSetAside('a')).toBe(true);
  clock.now = 2 * MINUTE_MS;
  expect(rests.keys()).toEqual([]);
  expect(rests.wasSetAside('a')).toBe(false);
});

it('one that is set aside again and again rests for longer each time, but for no more than 16 minutes', () => {
  const { clock, rests } = resting();
  const rested: number[] = [];
  for (let count = 0; count < 7; count += 1) {
    rests.add('a');
    const began = clock.now;
    while (rests.keys().length > 0) clock.now += MINUTE_MS;
    rested.push((clock.now - began) / MINUTE_MS);
  }
  expect(rested).toEqual([1, 2, 4, 8, 16, 16, 16]);
});

it('tells how many rest whenever that changes', () => {
  const { clock, told, rests } = resting();
  rests.add('a');
  rests.add('b');
  rests.keys();
  clock.now = MINUTE_MS;
  rests.keys();
  expect(told).toEqual([1, 2, 0]);
});
