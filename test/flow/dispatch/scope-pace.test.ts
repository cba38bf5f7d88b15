import { expect, it } from 'vitest';
import { ScopePace, hasMany } from '../../../src/flow/dispatch/scope-pace.ts';
import { LaneBook } from '../../../src/flow/dispatch/lane.ts';
import { parseScopeShares } from '../../../src/core/access/scope-shares.ts';
import { ATTACK } from '../../support/runner/attack.ts';

const TOTAL = 256;
const [SHARES] = parseScopeShares('a.:1,b.:1');

/** A scope `a.` with very many waiting runs, whose attempts each keep the process busy for a while, and a scope `b.` with few. */
function paced(busyMsOfAttempt: number) {
  const book = new LaneBook(SHARES);
  const [a, b] = [book.of('http h @a.'), book.of('http h @b.')];
  book.addWaiting(a, 10_000);
  let now = 10_000;
  let busyMs = 0;
  let lookedAt = now;
  const pace = new ScopePace({
    ...{ book, total: TOTAL, clock: { now: () => now, monotonic: () => now } },
    busyShare: () => {
      const share = Math.min(1, busyMs / (now - lookedAt));
      [busyMs, lookedAt] = [0, now];
      return share;
    },
    later: () => undefined,
  });
  const begin = (most: number) => {
    let begun = 0;
    for (; begun < most && pace.mayBegin(a.scope, now); begun += 1) pace.began();
    busyMs += begun * busyMsOfAttempt;
    return begun;
  };
  /** As many attempts as it may, for so many ms; answers how many it began. */
  const run = (ms: number, most = TOTAL) => {
    let begun = 0;
    for (const end = now + ms; now < end; now += 5) {
      // The other scope is at work.
      b.scope.lastTurnAt = now;
      begun += begin(most);
    }
    return begun;
  };
  return { book, a, b, pace, run, begin, wait: (ms: number) => (now += ms) };
}

it(
  'a scope with very many runs begins so many that the process has most of its time for others',
  { tags: [ATTACK] },
  () => {
    for (const [busyMs, least, most] of [
      [0.2, 700, 1_200],
      [0.1, 1_400, 2_400],
      [0.5, 390, 500],
    ] as const) {
      const { run } = paced(busyMs);
      run(3_000);
      const perSecond = run(5_000) / 5;
      expect(perSecond).toBeGreaterThan(least);
      expect(perSecond).toBeLessThan(most);
    }
  },
);

it('it always begins some, however busy the process is', () => {
  const { run } = paced(1_000);
  run(3_000);
  expect(run(1_000)).toBeGreaterThanOrEqual((1_000 / 20) * (TOTAL / 32));
});

it('it is not held back while no other scope is at work, or all that are have very many too', () => {
  const alone = paced(1);
  alone.wait(60_000);
  expect(alone.begin(2_000)).toBe(2_000);
  const both = paced(1);
  both.book.addWaiting(both.b, 100);
  both.b.scope.lastTurnAt = 10_000;
  expect(both.begin(2_000)).toBe(2_000);
});

it('a scope with few runs is never held back', () => {
  const { b, run, pace } = paced(5);
  run(2_000);
  expect(hasMany(b.scope)).toBe(false);
  expect(pace.mayBegin(b.scope, 20_000)).toBe(true);
});

it('while another scope is at work, what is claimed ahead is what it may begin in half a second, and no more until half is begun', () => {
  const { book, a, pace, run, wait } = paced(0.2);
  run(5_000);
  expect(pace.freeOf(a.scope)).toBe(0);
  book.addWaiting(a, -10_000);
  const free = pace.freeOf(a.scope);
  expect(free).toBeGreaterThan(350);
  expect(free).toBeLessThan(700);
  book.addWaiting(a, Math.ceil(free * 0.6));
  expect(pace.freeOf(a.scope)).toBe(0);
  book.addWaiting(a, -Math.ceil(free * 0.2));
  expect(pace.freeOf(a.scope)).toBeGreaterThan(free / 2);
  wait(60_000);
  expect(pace.freeOf(a.scope)).toBe(Infinity);
});
