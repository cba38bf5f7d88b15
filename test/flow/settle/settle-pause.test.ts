import { expect, it } from 'vitest';
import { pauseAfter } from '../../../src/flow/settle/settle-pause.ts';

it('few ends are written soon, also if nothing waited for them', () => {
  expect(pauseAfter({ count: 0, wereAwaited: false })).toBe(15);
  expect(pauseAfter({ count: 19, wereAwaited: false })).toBe(15);
});

it('when many end, more of them are written at once; sooner where something waited for one of the last', () => {
  expect(pauseAfter({ count: 20, wereAwaited: false })).toBe(250);
  expect(pauseAfter({ count: 2_000, wereAwaited: true })).toBe(50);
});
