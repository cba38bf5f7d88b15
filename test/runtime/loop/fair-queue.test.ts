import { expect, it } from 'vitest';
import { FairQueue } from '../../../src/runtime/loop/fair-queue.ts';

const item = (lane: string, n: number) => ({ lane, n });
const any = () => true;

it('lanes take turns, each in its own order, and those that may not go are passed over', () => {
  const queue = new FairQueue<{ lane: string; n: number }>({ most: 10, mostOfLane: 10 });
  for (const n of [1, 2, 3]) queue.add(item('a', n));
  for (const n of [1, 2]) queue.add(item('b', n));
  const names = Array.from({ length: 4 }, () => queue.takeFirst(any)).map((one) => `${one?.lane}${one?.n}`);
  expect(names).toEqual(['a1', 'b1', 'a2', 'b2']);
  expect(queue.takeFirst((lane) => lane !== 'a')).toBeNull();
  expect(queue.takeAll()).toEqual([item('a', 3)]);
  expect(queue.takeFirst(any)).toBeNull();
});

it('a lane that has most gives up its newest for one that has fewer, and for none of its own', () => {
  const queue = new FairQueue<{ lane: string; n: number }>({ most: 4, mostOfLane: 3 });
  for (const n of [1, 2, 3]) expect(queue.add(item('a', n))).toBeNull();
  expect(queue.add(item('a', 4))).toEqual(item('a', 4));
  expect(queue.add(item('b', 1))).toBeNull();
  expect(queue.add(item('c', 1))).toEqual(item('a', 3));
  // Now each would have as many as the longest: the new one is dropped.
  expect(queue.add(item('b', 2))).toEqual(item('b', 2));
  expect(queue.takeAll()).toHaveLength(4);
});
