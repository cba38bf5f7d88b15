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
