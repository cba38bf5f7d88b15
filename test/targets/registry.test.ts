import { describe, expect, test } from 'vitest';
import type { Target } from '../../src/core/schedules/schedule.ts';
import { createTargetRegistry } from '../../src/targets/target.ts';
import { attemptOf, httpTarget, never, receive } from './receivers.ts';
import { targetAt } from '../support/targets.ts';

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

describe('a lane', () => {
  const registryOf = () => createTargetRegistry([httpTarget()]);
  const laneOf = (url: string) => registryOf().laneOf(targetAt(url));
  /** Another program has stored it: the API takes no hostname that long. */
  const cjk = (length: number) =>
    Array.from({ length }, (_, n) => String.fromCodePoint(0x4e00 + ((n * 7919) % 20_000))).join('');

  test('is its type and origin while that takes at most 200 bytes', () => {
    const fits = `https://${'a'.repeat(200 - 'http https://'.length)}`;
    expect(laneOf(`${fits}/x`)).toBe(`http ${fits}`);
    expect(Buffer.byteLength(laneOf(`${fits}/x`))).toBe(200);
    expect(laneOf(`${fits}a/x`)).not.toContain(fits);
  });

  test.each([
    ['a long hostname', `https://${'a'.repeat(240)}.example/x`, 'http https://aaaa'],
    ['two thousand CJK characters', `https://${cjk(2000)}/x`, 'http https://xn--'],
    ['a URL that is none', `https://[${cjk(600)}`, `http https://[${cjk(5)}`],
    ['a URL that is none, of characters in four bytes', `é https://[${'🧯'.repeat(500)}`, 'http é https://[🧯🧯'],
  ])('of %s is the beginning of that and its hash', (_name, url, start) => {
    const lane = laneOf(url);
    expect(Buffer.byteLength(lane)).toBeLessThanOrEqual(200);
    expect(lane).toMatch(/#[0-9a-f]{64}$/);
    expect([lane.startsWith(start), lane.isWellFormed(), registryOf().canSend(lane)]).toEqual([true, true, true]);
    expect(laneOf(url)).toBe(lane);
  });

  test('differs for another origin, however late the difference comes', () => {
    const long = `https://${'a'.repeat(240)}`;
    const lanes = [`${long}.one`, `${long}.two`, `${long}.one:8443`].map((origin) => laneOf(`${origin}/x`));
    expect(new Set(lanes).size).toBe(3);
    expect(laneOf(`${long}.one/y?z`)).toBe(lanes[0]);
  });

  test('of a queue is the whole of its name', () => {
    expect(registryOf().laneOf({ type: 'pull', queue: 'q'.repeat(128) })).toBe(`pull ${'q'.repeat(128)}`);
  });
});
