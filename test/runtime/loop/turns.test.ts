import { expect, test } from 'vitest';
import { createTurns } from '../../../src/runtime/loop/turns.ts';

const PATIENT = { limitMs: 60_000 };

/** Who has had a place so far, in this order; each keeps it until `next`. */
function taken(turns: ReturnType<typeof createTurns>) {
  const order: string[] = [];
  const places: (() => void)[] = [];
  return {
    order,
    ask: (name: string, key: string) =>
      turns.take(key, PATIENT).then((leave) => {
        order.push(leave === null ? `${name} refused` : name);
        if (leave) places.push(leave);
      }),
    next: async () => {
      places.shift()?.();
      await new Promise(setImmediate);
    },
  };
}

test('only so many go on at once, and the lines of those that wait take turns', async () => {
  const turns = createTurns({ places: 2, mostWaiting: 10, mostOfKey: 10 });
  const { order, ask, next } = taken(turns);
  const asked = ['a1', 'a2', 'a3', 'a4', 'b1', 'b2'].map((name) => ask(name, name.slice(0, 1)));
  await new Promise(setImmediate);
  expect([order, turns.waiting()]).toEqual([['a1', 'a2'], 4]);
  for (let left = 0; left < 6; left += 1) await next();
  await Promise.all(asked);
  expect(order).toEqual(['a1', 'a2', 'a3', 'b1', 'a4', 'b2']);
  expect(turns.waiting()).toBe(0);
  // Both places are free again.
  await Promise.all([ask('c1', 'c'), ask('c2', 'c')]);
});

test('beyond the bounds of one key, and of all, none waits', async () => {
  const { order, ask, next } = taken(createTurns({ places: 1, mostWaiting: 3, mostOfKey: 2 }));
  const asked = ['a1', 'a2', 'a3', 'a4', 'b1', 'b2'].map((name) => ask(name, name.slice(0, 1)));
  await new Promise(setImmediate);
  expect(order).toEqual(['a1', 'a4 refused', 'b2 refused']);
  for (let left = 0; left < 4; left += 1) await next();
  await Promise.all(asked);
  expect(order.slice(3)).toEqual(['a2', 'b1', 'a3']);
});

test('where no more may wait, the longest line gives up its newest for a shorter one, and for none that would be as long', async () => {
  const { order, ask, next } = taken(createTurns({ places: 1, mostWaiting: 4, mostOfKey: 3 }));
  const asked = ['a1', 'a2', 'a3', 'a4', 'b1', 'c1', 'b2'].map((name) => ask(name, name.slice(0, 1)));
  await new Promise(setImmediate);
  expect(order).toEqual(['a1', 'a4 refused', 'b2 refused']);
  for (let left = 0; left < 5; left += 1) await next();
  await Promise.all(asked);
  expect(order.slice(3)).toEqual(['a2', 'b1', 'c1', 'a3']);
});

test('a key has no more places than it says, and leaves the others to whoever comes', async () => {
  const turns = createTurns({ places: 4, mostWaiting: 10, mostOfKey: 10 });
  const modest = { ...PATIENT, most: 2 };
  const first = await turns.take('a', modest);
  await turns.take('a', modest);
  const order: string[] = [];
  const third = turns.take('a', modest).then((leave) => (order.push('a'), leave));
  expect(await turns.take('b', PATIENT)).not.toBeNull();
  const last = await turns.take('b', PATIENT);
  const waiting = turns.take('c', PATIENT).then((leave) => (order.push('c'), leave));
  last?.();
  await waiting;
  expect([order, turns.waiting()]).toEqual([['c'], 1]);
  first?.();
  await third;
  expect(order).toEqual(['c', 'a']);
});

test('one that has gone, or whose time is up, loses its turn and no other’s', async () => {
  const turns = createTurns({ places: 1, mostWaiting: 10, mostOfKey: 10 });
  const leave = await turns.take('a', PATIENT);
  const gone = new AbortController();
  const leaver = turns.take('a', { ...PATIENT, signal: gone.signal });
  const hasty = turns.take('a', { limitMs: 1 });
  const patient = turns.take('a', PATIENT);
  gone.abort();
  expect(await leaver).toBeNull();
  expect(await hasty).toBeNull();
  expect(await turns.take('a', { ...PATIENT, signal: gone.signal })).toBeNull();
  leave?.();
  expect(await patient).not.toBeNull();
});
