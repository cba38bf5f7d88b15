import { expect, it } from 'vitest';
import { waitAfter } from '../../../src/flow/settle-queue.ts';

const SLOTS = 256;

it('few ends are written soon, also if nothing waited for them', () => {
  expect(waitAfter({ count: 0, wereAwaited: false, slots: SLOTS })).toBe(15);
  expect(waitAfter({ count: 19, wereAwaited: false, slots: SLOTS })).toBe(15);
});

it('when many end, more of them are written at once; sooner where something waited for one of the last', () => {
  expect(waitAfter({ count: 20, wereAwaited: false, slots: SLOTS })).toBe(250);
  expect(waitAfter({ count: 2_000, wereAwaited: false, slots: SLOTS })).toBe(250);
  expect(waitAfter({ count: 2_000, wereAwaited: true, slots: SLOTS })).toBe(50);
});

it('sooner, too, where the ends take up much of the room for claims', () => {
  expect(waitAfter({ count: 63, wereAwaited: false, slots: 8 })).toBe(250);
  expect(waitAfter({ count: 64, wereAwaited: false, slots: 8 })).toBe(50);
});
