import { expect, test } from 'vitest';
import { createPace } from '../../../src/runtime/loop/slices.ts';

test('steps that are quick follow each other at once; after one that took long, others have their turn', async () => {
  let now = 0;
  const pace = createPace({ now: () => 0, monotonic: () => now });
  expect(pace()).toBeUndefined();
  now += 1;
  expect(pace()).toBeUndefined();
  now += 1_000;
  const order: string[] = [];
  setImmediate(() => order.push('another'));
  await pace();
  order.push('this one');
  expect(order).toEqual(['another', 'this one']);
  expect(pace()).toBeUndefined();
});
