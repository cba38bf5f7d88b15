import { appendFile, readFile } from 'node:fs/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { openFileStore } from '../../clients/typescript/src/receiver/file-store.ts';
import { type Reply, type RunStore, memoryStore } from '../../clients/typescript/src/receiver/store.ts';
import { runIdOf } from '../support/signed.ts';
import { temporaryFile } from './temporary-file.ts';

const REPLY: Reply = { status: 200, headers: {}, body: '{"big":12345678901234567890}' };

const stores: [string, () => Promise<RunStore>][] = [
  ['in memory', () => Promise.resolve(memoryStore())],
  [
    'in a file',
    async () => {
      const store = await openFileStore(await temporaryFile());
      onTestFinished(() => store.close());
      return store;
    },
  ],
];

describe.each(stores)('a store %s', (_, open) => {
  test('gives a run to one of two at once, and says what was answered once it is done', async () => {
    const store = await open();
    const both = await Promise.all([store.begin('a', 1), store.begin('a', 2)]);
    expect(both.map(({ state }) => state)).toEqual(['new', 'busy']);
    await store.finish('a', 1, REPLY);
    expect(await store.begin('a', 2)).toEqual({ state: 'done', reply: REPLY });
    expect(await store.begin('a', 5)).toEqual({ state: 'done', reply: REPLY });
    expect(await store.begin('a', 4)).toEqual({ state: 'stale', seen: 5 });
    expect(await store.begin('b', 1)).toEqual({ state: 'new' });
  });

  test('gives a run whose work has failed to the next attempt, and to no lower one', async () => {
    const store = await open();
    await store.begin('a', 3);
    await store.release('a', 3);
    expect(await store.begin('a', 2)).toEqual({ state: 'stale', seen: 3 });
    expect(await store.begin('a', 4)).toEqual({ state: 'new' });
  });
});

test('a store in memory forgets the oldest run, but none that is being worked on', async () => {
  const store = memoryStore({ maxRuns: 2 });
  await store.begin('busy', 1);
  for (const id of ['a', 'b', 'c']) {
    await store.begin(id, 1);
    await store.finish(id, 1, REPLY);
  }
  expect((await store.begin('busy', 2)).state).toBe('busy');
  expect((await store.begin('c', 2)).state).toBe('done');
  expect((await store.begin('a', 2)).state).toBe('new');
});

test('a store in a file outlives a process that was killed, in the middle of a line too', async () => {
  const file = await temporaryFile();
  const killed = await openFileStore(file);
  const [done, begun, old] = [runIdOf(), runIdOf(), runIdOf(Date.now() - 33 * 86_400_000)];
  for (const id of [done, begun, old]) await killed.begin(id, 2);
  for (const id of [done, old]) await killed.finish(id, 2, REPLY);
  await killed.close();
  await appendFile(file, '{"runId":"half');

  const store = await openFileStore(file);
  expect(await store.begin(done, 3)).toEqual({ state: 'done', reply: REPLY });
  expect(await store.begin(begun, 1)).toEqual({ state: 'stale', seen: 2 });
  // What was worked on died with its process.
  expect(await store.begin(begun, 3)).toEqual({ state: 'new' });
  expect(await store.begin(old, 3)).toEqual({ state: 'new' });
  await store.close();
  const lines = (await readFile(file, 'utf8')).trimEnd().split('\n');
  for (const line of lines) expect(JSON.parse(line)).toHaveProperty('runId');
});
