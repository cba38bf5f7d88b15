import { afterEach, expect, test } from 'vitest';
import { systemClock } from '../../src/runtime/clock.ts';
import { collectGarbage } from '../../src/runtime/engine.ts';
import { createEventBus } from '../../src/runtime/event-bus.ts';
import { type Memory, createIdleMemory } from '../../src/runtime/idle-memory.ts';
import type { Loop } from '../../src/runtime/loop/loop.ts';
import { until } from '../support/until.ts';

const MB = 1024 * 1024;
let loop: Loop | undefined;
afterEach(() => loop?.stop());

/** A process of 40 MB, of which each collection leaves 30. */
function process() {
  const state = { heap: 40 * MB, worked: 0, collections: 0 };
  const memory: Memory = {
    heap: () => state.heap,
    worked: () => state.worked,
    collect: () => {
      state.collections += 1;
      return (state.heap = 30 * MB);
    },
  };
  const watching = createIdleMemory({ clock: systemClock, events: createEventBus(), memory });
  loop = watching;
  void watching.start();
  const looks = async (count: number) => {
    for (let n = 0; n < count; n += 1) {
      const before = watching.passes();
      watching.wake();
      await until(() => watching.passes() > before || null);
    }
  };
  return { state, looks };
}

test('after a burst, garbage is collected once, when the process has been calm for four looks in a row', async () => {
  const { state, looks } = process();
  await looks(1);
  Object.assign(state, { heap: 300 * MB, worked: 0.9 });
  await looks(9);
  state.worked = 0.01;
  await looks(3);
  state.worked = 0.2;
  await looks(1);
  state.worked = 0.01;
  await looks(3);
  expect(state.collections).toBe(0);
  await looks(1);
  expect(state.collections).toBe(1);
  await looks(20);
  expect(state.collections).toBe(1);
});

test('a heap that is not much larger than what is alive is left alone', async () => {
  const { state, looks } = process();
  state.heap = 60 * MB;
  await looks(20);
  expect(state.collections).toBe(0);
});

test('a collection takes what is not reachable any more', async () => {
  const held: { object: object | null } = { object: {} };
  const seen = new WeakRef(held.object ?? {});
  held.object = null;
  // A WeakRef keeps its object until the end of the turn in which it was made.
  await new Promise((resolve) => setImmediate(resolve));
  collectGarbage();
  expect(seen.deref()).toBeUndefined();
});
