import { describe, expect, test } from 'vitest';
import { type Resolve, NameNotResolved } from '../../../src/runtime/names/resolve.ts';
import { createResolver } from '../../../src/runtime/names/resolver.ts';

interface Asked {
  name: string;
  signal: AbortSignal;
  answer: (address: string, seconds: number) => void;
  fail: () => void;
}

/** A resolver whose look-ups end when the test says so, under a clock that it moves. */
function underControl(options: Parameters<typeof createResolver>[0] = {}) {
  const asked: Asked[] = [];
  const time = { ms: 0 };
  const resolve: Resolve = createResolver({
    clock: { now: () => 0, monotonic: () => time.ms },
    lookUp: (name, signal) =>
      new Promise((found, refuse) => {
        const fail = () => refuse(new NameNotResolved('ENOTFOUND', `${name} has no address`));
        const answer = (address: string, seconds: number) => found({ addresses: [{ address, family: 4 }], seconds });
        asked.push({ name, signal, answer, fail });
        signal.addEventListener('abort', fail);
      }),
    ...options,
  });
  return { resolve, asked, time };
}

const at = (address: string) => [{ address, family: 4 }];

describe('callers of one name', () => {
  test('share one look-up, whatever the case of its letters', async () => {
    const { resolve, asked } = underControl();
    const all = ['a.test', 'A.Test', 'a.test'].map((name) => resolve(name));
    expect(asked.map(({ name }) => name)).toEqual(['a.test']);
    asked[0]?.answer('10.0.0.1', 9);
    expect(await Promise.all(all)).toEqual([at('10.0.0.1'), at('10.0.0.1'), at('10.0.0.1')]);
  });

  test('leave without each other; with the last one the look-up ends, and the next caller begins another', async () => {
    const { resolve, asked } = underControl();
    const [one, other] = [new AbortController(), new AbortController()];
    const left = resolve('a.test', one.signal);
    const stays = resolve('a.test', other.signal);
    one.abort(new Error('given up'));
    await expect(left).rejects.toThrow('given up');
    expect(asked[0]?.signal.aborted).toBe(false);
    other.abort(new Error('given up too'));
    await expect(stays).rejects.toThrow('given up too');
    expect(asked[0]?.signal.aborted).toBe(true);
    const next = resolve('a.test');
    asked[1]?.answer('10.0.0.2', 9);
    expect(await next).toEqual(at('10.0.0.2'));
  });

  test('that have left before asking are not asked for', async () => {
    const { resolve, asked } = underControl();
    await expect(resolve('a.test', AbortSignal.abort(new Error('given up')))).rejects.toThrow('given up');
    expect(asked).toEqual([]);
  });
});

describe('what was found', () => {
  test.each([
    [7, 7],
    [86_400, 30],
  ])('with %d seconds to live is used for %d', async (lives, isUsed) => {
    const { resolve, asked, time } = underControl();
    const first = resolve('a.test');
    asked[0]?.answer('10.0.0.1', lives);
    await first;
    time.ms = isUsed * 1000 - 1;
    expect(await resolve('a.test')).toEqual(at('10.0.0.1'));
    expect(asked).toHaveLength(1);
    time.ms += 1;
    void resolve('a.test');
    expect(asked).toHaveLength(2);
  });

  test('with no time to live is not used again', async () => {
    const { resolve, asked } = underControl();
    const first = resolve('a.test');
    asked[0]?.answer('10.0.0.1', 0);
    await first;
    const second = resolve('a.test');
    asked[1]?.answer('10.0.0.2', 0);
    expect(await second).toEqual(at('10.0.0.2'));
  });

  test('a failure is remembered for some seconds, and then asked anew', async () => {
    const { resolve, asked, time } = underControl({ failureSeconds: 5 });
    const first = resolve('a.test');
    asked[0]?.fail();
    await expect(first).rejects.toThrow('a.test has no address');
    time.ms = 4_999;
    await expect(resolve('a.test')).rejects.toThrow('a.test has no address');
    expect(asked).toHaveLength(1);
    time.ms = 5_000;
    const again = resolve('a.test');
    asked[1]?.answer('10.0.0.1', 9);
    expect(await again).toEqual(at('10.0.0.1'));
  });

  test('is bounded in number: the oldest is forgotten', async () => {
    const asked: string[] = [];
    const resolve = createResolver({
      lookUp: (name) => {
        asked.push(name);
        return Promise.resolve({ addresses: at('10.0.0.1'), seconds: 30 });
      },
      clock: { now: () => 0, monotonic: () => 0 },
    });
    for (let n = 0; n <= 1_000; n++) await resolve(`${n}.test`);
    await resolve('1000.test');
    await resolve('0.test');
    expect(asked.slice(1_000)).toEqual(['1000.test', '0.test']);
  });
});

test('names beyond the bound fail at once, and are not remembered', async () => {
  const { resolve, asked } = underControl({ mostAtOnce: 2 });
  const [one] = [resolve('1.test'), resolve('2.test')];
  await expect(resolve('3.test')).rejects.toThrow('too many other names are being looked up');
  asked[0]?.answer('10.0.0.1', 9);
  await one;
  const third = resolve('3.test');
  asked[2]?.answer('10.0.0.3', 9);
  expect(await third).toEqual(at('10.0.0.3'));
});
