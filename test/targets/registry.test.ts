import { expect, test } from 'vitest';
import type { Target } from '../../src/core/schedule.ts';
import { createTargetRegistry } from '../../src/targets/registry.ts';
import { attemptOf, httpTarget, never, receive, targetAt } from './receivers.ts';

test('a registry finds the kind by the type of the target, and closes all', async () => {
  const { url } = await receive();
  const kind = httpTarget();
  const registry = createTargetRegistry([kind]);
  expect(registry.types).toEqual(['http']);
  expect(registry.kindOf(targetAt(url))).toBe(kind);
  expect(registry.kindOf({ type: 'pigeon' } as unknown as Target)).toBeUndefined();
  await registry.close();
  expect(await kind.deliver(targetAt(url), attemptOf(), never)).toMatchObject({ kind: 'transient' });
});

test('a queue has a lane of its own, and nothing is sent to it', async () => {
  const { url } = await receive();
  const registry = createTargetRegistry([httpTarget()]);
  const pull: Target = { type: 'pull', queue: 'reports.v1' };
  expect(registry.laneOf(pull)).toBe('pull reports.v1');
  expect(registry.laneOf(targetAt(`${url}/x`))).toBe(`http ${url}`);
  expect(registry.kindOf(pull)).toBeUndefined();
  expect([registry.canSend('pull reports.v1'), registry.canSend(`http ${url}`)]).toEqual([false, true]);
  // A queue may be named as anything is.
  expect(registry.canSend(registry.laneOf({ type: 'pull', queue: 'http' }))).toBe(false);
});
