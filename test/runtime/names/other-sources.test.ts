// @module-tag attack
import { expect, test } from 'vitest';
import { createOtherSources } from '../../../src/runtime/names/machine-names.ts';

const never = new AbortController().signal;

test('getaddrinfo is called for one name at a time, so names without an answer occupy one thread', async () => {
  const asked: { name: string; answer: () => void }[] = [];
  const ask = createOtherSources((name) => {
    const { promise, resolve } = Promise.withResolvers<{ address: string; family: number }[]>();
    asked.push({ name, answer: () => resolve([{ address: '10.0.0.1', family: 4 }]) });
    return promise;
  });
  const caller = new AbortController();
  const silent = ask('silent.local', caller.signal);
  const leaves = ask('leaves.local', caller.signal);
  const stays = ask('stays.local', never);
  await expect.poll(() => asked.length).toBe(1);
  caller.abort(new Error('given up'));
  await expect(silent).rejects.toThrow('given up');
  await expect(leaves).rejects.toThrow('given up');
  expect(asked.map(({ name }) => name)).toEqual(['silent.local']);
  asked[0]?.answer();
  await expect.poll(() => asked.map(({ name }) => name)).toEqual(['silent.local', 'stays.local']);
  asked[1]?.answer();
  expect(await stays).toEqual([{ address: '10.0.0.1', family: 4 }]);
});

test('a failure of one does not end the turns of others', async () => {
  const ask = createOtherSources((name) =>
    name === 'bad.local' ? Promise.reject(new Error('no such name')) : Promise.resolve([]),
  );
  await expect(ask('bad.local', never)).rejects.toThrow('no such name');
  expect(await ask('good.local', never)).toEqual([]);
});
