import { expect, it, onTestFinished, vi } from 'vitest';
import { type BatchFault, batchCalls, createPageSize, inHalves } from '../../../src/runtime/loop/batch.ts';
import { systemClock } from '../../../src/runtime/clock.ts';
import { until } from '../../support/until.ts';

/** Batches with one of these items are at fault. */
function workOn(bad: ReadonlyMap<number, BatchFault>) {
  const done: number[] = [];
  const aside: number[] = [];
  const batches: number[] = [];
  return {
    done,
    aside,
    batches,
    halving: {
      work: (items: readonly number[]) => {
        batches.push(items.length);
        const culprit = items.find((item) => bad.has(item) && !aside.includes(item));
        if (culprit !== undefined) return Promise.reject(new Error(bad.get(culprit)));
        done.push(...items);
        return Promise.resolve();
      },
      faultOf: (error: unknown) => (error as Error).message as BatchFault,
      setAside: (item: number) => void aside.push(item),
    },
  };
}

const items = (count: number) => Array.from({ length: count }, (_, index) => index);

it.each(['refused', 'outOfTime'] as const)(
  'one item that is %s is set aside, and all others are done',
  async (fault) => {
    const { halving, done, aside } = workOn(new Map([[317, fault]]));
    await inHalves(items(500), halving);
    expect(aside).toEqual([317]);
    expect(done.sort((a, b) => a - b)).toEqual(items(500).filter((item) => item !== 317));
  },
);

it('a batch that was too much as a whole is done in parts, and no item is set aside', async () => {
  const { halving, done, aside } = workOn(new Map());
  const work = (some: readonly number[]) =>
    some.length > 100 ? Promise.reject(new Error('outOfTime')) : halving.work(some);
  await inHalves(items(500), { ...halving, work });
  expect(done).toHaveLength(500);
  expect(aside).toEqual([]);
});

it('where many items take too long, few are tried before the pass ends, and what was set aside stays so: in the end all others are done', async () => {
  const slow = new Map(items(500).flatMap((item) => (item % 100 === 50 ? [[item, 'outOfTime'] as const] : [])));
  const { halving, aside, batches } = workOn(slow);
  let left = items(500);
  for (let passes = 1; left.length > 0; passes += 1) {
    expect(passes).toBeLessThan(10);
    const [ranOut, passDone]: [number[], number[]] = [[], []];
    const work = async (some: readonly number[]) => {
      await halving.work(some).catch((error: unknown) => {
        ranOut.push(some.length);
        throw error;
      });
      passDone.push(...some);
    };
    await inHalves(left, { ...halving, work }).catch(() => undefined);
    expect(ranOut.length).toBeLessThanOrEqual(5);
    left = left.filter((item) => !passDone.includes(item) && !aside.includes(item));
  }
  expect(aside.sort((a, b) => a - b)).toEqual([...slow.keys()]);
  expect(Math.max(...batches)).toBe(500);
});

it('an outage is the fault of no batch: it is tried once, and nothing is set aside', async () => {
  const tried: number[] = [];
  const outage = new Error('gone');
  const halving = {
    work: (some: readonly number[]) => {
      tried.push(some.length);
      return Promise.reject(outage);
    },
    faultOf: () => null,
    setAside: () => expect.unreachable(),
  };
  await expect(inHalves(items(500), halving)).rejects.toBe(outage);
  expect(tried).toEqual([500]);
});

it('items that were at fault before are tried apart from the others, and after them', async () => {
  const { halving, done, aside, batches } = workOn(new Map([[3, 'outOfTime']]));
  await inHalves(items(500), { ...halving, wasSetAside: (item) => item === 3 || item === 7 });
  expect(batches).toEqual([498, 2, 1, 1]);
  expect(aside).toEqual([3]);
  expect(done).toHaveLength(499);
});

it('the parts beside one that ran out of time are done before it is divided', async () => {
  const { halving, done, batches } = workOn(new Map([[0, 'outOfTime']]));
  const ranOut: number[] = [];
  const work = async (some: readonly number[]) => {
    await halving.work(some).catch((error: unknown) => {
      ranOut.push(done.length);
      throw error;
    });
  };
  await inHalves(items(512), { ...halving, work });
  expect(ranOut).toEqual([0, 0, 448, 504]);
  expect(batches.slice(0, 9)).toEqual([512, ...Array.from({ length: 8 }, () => 64)]);
});

it('a fault that an item cannot be set aside for keeps no other part from its turn', async () => {
  const { halving, done } = workOn(new Map([[5, 'refused']]));
  const setAside = () => Promise.reject(new Error('gone'));
  await expect(inHalves(items(8), { ...halving, setAside })).rejects.toThrow('gone');
  expect(done.sort((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 6, 7]);
});

it('where each item is refused, a pass ends after a minute, and the next ones go on with those that are not set aside yet', async () => {
  let seconds = 0;
  const clock = vi.spyOn(systemClock, 'monotonic').mockImplementation(() => seconds * 1000);
  onTestFinished(() => clock.mockRestore());
  const { halving, aside } = workOn(new Map(items(500).map((item) => [item, 'refused'])));
  const work = (some: readonly number[]) => {
    seconds += 1;
    return halving.work(some);
  };
  let left = items(500);
  for (let passes = 1; left.length > 0; passes += 1) {
    const began = seconds;
    await inHalves(left, { ...halving, work }).catch(() => undefined);
    expect(seconds - began).toBeLessThan(63);
    expect(passes).toBeLessThan(30);
    left = left.filter((item) => !aside.includes(item));
  }
  expect(aside).toHaveLength(500);
});

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

it('pages get smaller as long as they are too much, down to one row, and larger again afterwards', async () => {
  const page = createPageSize(2_000);
  const tried: number[] = [];
  let bearable = 20;
  const work = (limit: number) => {
    tried.push(limit);
    return limit > bearable ? Promise.reject(new Error('out of time')) : Promise.resolve(limit);
  };
  for (let pass = 0; pass < 5; pass += 1) await page.fit(work).catch(() => undefined);
  expect(tried).toEqual([2_000, 500, 125, 31, 7]);
  bearable = 0;
  for (let pass = 0; pass < 3; pass += 1) await page.fit(work).catch(() => undefined);
  bearable = Infinity;
  for (let pass = 0; pass < 12; pass += 1) await page.fit(work);
  expect(tried.slice(5)).toEqual([14, 3, 1, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024, 2_000]);
});
