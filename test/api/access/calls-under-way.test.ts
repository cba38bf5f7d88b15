import { expect, test } from 'vitest';
import { type CallPace, createCallsUnderWay } from '../../../src/api/access/calls-under-way.ts';

test('calls of a caller are counted by their pace, slow ones with the usual, and an end makes room', () => {
  const calls = createCallsUnderWay({ usual: 2, prompt: 1, waits: 1 });
  const enter = (caller: string, pace: CallPace) => calls.enter(caller, pace);
  const leave = enter('eve', 'usual');
  expect(enter('eve', 'slow')).not.toBeNull();
  expect([enter('eve', 'usual'), enter('eve', 'slow')]).toEqual([null, null]);
  expect([enter('eve', 'prompt'), enter('eve', 'waits'), enter('bob', 'slow')]).not.toContain(null);
  expect([enter('eve', 'prompt'), enter('eve', 'waits')]).toEqual([null, null]);
  leave?.();
  expect(enter('eve', 'slow')).not.toBeNull();
  expect(enter('eve', 'slow')).toBeNull();
});
