import { afterEach, expect, test } from 'vitest';
import { systemClock } from '../../src/runtime/clock.ts';
import { giveMemoryBack } from '../../src/runtime/engine.ts';
import { createEventBus } from '../../src/runtime/event-bus.ts';
import { type Memory, createIdleMemory } from '../../src/runtime/idle-memory.ts';
import type { Loop } from '../../src/runtime/loop/loop.ts';
import { until } from '../support/until.ts';

let loop: Loop | undefined;
afterEach(() => loop?.stop());

function process() {
  const state = { worked: 0, givenBack: 0 };
  const memory: Memory = {
    worked: () => state.worked,
    giveBack: () => void (state.givenBack += 1),
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

test('after a burst, memory is given back once, when the process has been calm for ten minutes', async () => {
  const { state, looks } = process();
  await looks(1);
  state.worked = 0.9;
  await looks(9);
  state.worked = 0.01;
  await looks(110);
  state.worked = 0.2;
  await looks(1);
  state.worked = 0.01;
  await looks(119);
  expect(state.givenBack).toBe(0);
  await looks(1);
  expect(state.givenBack).toBe(1);
  await looks(150);
  expect(state.givenBack).toBe(1);
});

test('a collection takes what is not reachable any more', async () => {
  const held: { object: object | null } = { object: {} };
  const seen = new WeakRef(held.object ?? {});
  held.object = null;
  // A WeakRef keeps its object until the end of the turn in which it was made.
  await new Promise((resolve) => setImmediate(resolve));
  giveMemoryBack();
  expect(seen.deref()).toBeUndefined();
});
