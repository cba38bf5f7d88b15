import { describe, expect, it } from 'vitest';
import type { AlertKind } from '../../../src/core/alerts/alert.ts';
import { nextLookAt, soonerLook } from '../../../src/core/alerts/episode.ts';

const SECOND = 1_000;
const HOUR = 3_600 * SECOND;
const DAY = 24 * HOUR;

/** When an episode that was opened at 0 is looked at within a day in which it stays open. */
function looksOfADay(kind: AlertKind, nextFireAt: number | null, since = 0): number[] {
  const looks: number[] = [];
  let next = nextLookAt({ kind, since, nextFireAt, isFresh: true }, 0);
  while (next !== null && next < DAY) {
    looks.push(next);
    next = nextLookAt({ kind, since, nextFireAt, isFresh: false }, next);
  }
  return looks;
}

describe('an episode that is open for a day', () => {
  it.each([
    ['failed', DAY],
    ['late', DAY],
    ['missed', DAY],
    ['error', DAY],
    ['missed', null],
  ] as const)('is looked at some dozens of times at most: %s, the next fire at %s', (kind, nextFireAt) => {
    const looks = looksOfADay(kind, nextFireAt);
    expect(looks.length).toBeGreaterThanOrEqual(20);
    expect(looks.length).toBeLessThan(60);
  });

  it('and that a fire ends which is due and not planned, as in maintenance, is looked at every five minutes', () => {
    for (const kind of ['missed', 'error'] as const) {
      const looks = looksOfADay(kind, 0);
      expect(looks.length).toBeLessThan(300);
      expect(Math.max(...looks.map((at, index) => at - (looks[index - 1] ?? 0)))).toBe(300 * SECOND);
    }
  });

  it('and that an enabling ends is not looked at', () => {
    expect(looksOfADay('paused', DAY)).toEqual([]);
  });

  it('and that a fire ends is looked at a second after it', () => {
    expect(looksOfADay('missed', 600 * SECOND).slice(0, 2)).toEqual([20 * SECOND, 601 * SECOND]);
    expect(looksOfADay('error', 5 * SECOND)[0]).toBe(6 * SECOND);
  });

  it('is looked at soon, since when it ever is: what ends it may just be written', () => {
    for (const kind of ['failed', 'late', 'slow', 'unstarted', 'missed'] as const)
      expect(looksOfADay(kind, DAY, -DAY)[0]).toBe(20 * SECOND);
  });
});

it('a look that is to come stays, unless the next one is sooner', () => {
  expect(soonerLook(20, 30, 10)).toBe(20);
  expect(soonerLook(20, 15, 10)).toBe(15);
  expect(soonerLook(10, 30, 10)).toBe(30);
  expect(soonerLook(null, 30, 10)).toBe(30);
  expect(soonerLook(20, null, 10)).toBeNull();
});
