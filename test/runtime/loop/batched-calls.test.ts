import { expect, it } from 'vitest';
import { batchCalls } from '../../../src/runtime/loop/batched-calls.ts';
import { until } from '../../support/until.ts';

/** Batches that wait until they are let go, one after the other. */
function batching(options: { maxWeight?: number; weightOf?: (asked: number) => number } = {}) {
  const batches: { asked: readonly number[]; answer: (answers?: string[] | Error) => void }[] = [];
  const call = batchCalls<number, string>({
    ...options,
    work: (asked) =>
      new Promise((resolve, reject) => {
        const answer = (answers: string[] | Error = asked.map(String)) =>
          answers instanceof Error ? reject(answers) : resolve(answers);
        batches.push({ asked, answer });
      }),
  });
  const batch = async (index: number) => until(() => batches[index] ?? null);
  return { call, batch, batches };
}

it('calls of the same moment go together, and calls made meanwhile are the next batch', async () => {
  const { call, batch, batches } = batching();
  const first = [call(1), call(2)];
  expect((await batch(0)).asked).toEqual([1, 2]);
  const second = [call(3), call(4), call(5)];
  (await batch(0)).answer();
  expect(await Promise.all(first)).toEqual(['1', '2']);
  expect((await batch(1)).asked).toEqual([3, 4, 5]);
  expect(batches).toHaveLength(2);
  (await batch(1)).answer();
  expect(await Promise.all(second)).toEqual(['3', '4', '5']);
});

it('a batch weighs no more than it may, except for a single call that does', async () => {
  const { call, batch } = batching({ maxWeight: 10, weightOf: (asked) => asked });
  const answers = [12, 4, 6, 1, 11, 3].map(call);
  for (const [index, asked] of [[12], [4, 6], [1], [11], [3]].entries()) {
    expect((await batch(index)).asked).toEqual(asked);
    (await batch(index)).answer();
  }
  expect(await Promise.all(answers)).toEqual(['12', '4', '6', '1', '11', '3']);
});

it('a batch that fails fails for all of its calls, and for no other', async () => {
  const { call, batch } = batching();
  const first = Promise.allSettled([call(1), call(2)]);
  await batch(0);
  const second = call(3);
  (await batch(0)).answer(new Error('no'));
  expect((await first).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  (await batch(1)).answer();
  expect(await second).toBe('3');
});

it('a batch with too few answers fails', async () => {
  const { call, batch } = batching();
  const both = Promise.allSettled([call(1), call(2)]);
  (await batch(0)).answer(['1']);
  expect((await both).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
});
