// @module-tag attack
import { describe, expect, it } from 'vitest';
import { SimulatedLanes, names } from '../../support/simulated-lanes.ts';

/** As long as a target may let an attempt hang: nothing that is lent to it comes back within the test. */
const HOUR_MS = 3_600_000;
const QUICK_MS = 5;
const SLOW_MS = 2_000;
const of = (total: number) => new SimulatedLanes({ total, perLane: Math.min(64, total), timeoutMs: HOUR_MS });
const underWay = (lanes: SimulatedLanes, some: readonly string[]) => some.map((lane) => lanes.underWay(lane));
const sum = (counts: readonly number[]) => counts.reduce((all, one) => all + one, 0);

describe('origins that take requests and never answer', () => {
  it('three with 80 runs each leave slots to a target that answers in 2 s: its ten runs take two of its attempts', () => {
    const lanes = of(256);
    const hanging = names('hanging', 3);
    lanes.target('slow', () => SLOW_MS);
    lanes.add(hanging, 80);
    lanes.runUntil(10_000);
    expect(underWay(lanes, hanging).sort()).toEqual([38, 39, 39]);
    lanes.add(['slow'], 10);
    lanes.runUntil(10_000 + SLOW_MS);
    expect(lanes.sentTo('slow')).toHaveLength(10);
  });

  it.each([4, 8, 16, 64, 256])('three, and %i slots: slow and quick targets that come later go on', (total) => {
    const lanes = of(total);
    lanes.target('slow', () => SLOW_MS);
    lanes.target('quick', () => QUICK_MS);
    const hanging = names('hanging', 3);
    lanes.add(hanging, 80);
    lanes.runUntil(10_000);
    lanes.add(['slow', 'quick'], 10);
    lanes.runUntil(35_000);
    expect(Math.min(...underWay(lanes, hanging))).toBeGreaterThanOrEqual(1);
    expect([lanes.sentTo('slow').length, lanes.sentTo('quick').length]).toEqual([10, 10]);
  });

  it('some that answered before, quickly or slowly, leave slots when all of them stop at one moment', () => {
    const lanes = of(256);
    const STOP = 20_000;
    const [quickOnes, slowOnes] = [names('was-quick', 3), names('was-slow', 3)];
    for (const lane of quickOnes) lanes.target(lane, (now) => (now < STOP ? QUICK_MS : null));
    for (const lane of slowOnes) lanes.target(lane, (now) => (now < STOP ? SLOW_MS : null));
    lanes.target('slow', () => SLOW_MS);
    lanes.add(['slow', ...quickOnes, ...slowOnes], 1);
    lanes.runUntil(STOP);
    lanes.add([...quickOnes, ...slowOnes], 500);
    lanes.runUntil(STOP + 30_000);
    const taken = sum(underWay(lanes, [...quickOnes, ...slowOnes]));
    // As they moved, they took what is free down to half, and then a little each.
    expect(taken).toBeLessThanOrEqual(224);
    lanes.add(['slow'], 100);
    lanes.runUntil(STOP + 60_000);
    expect(lanes.sentTo('slow', STOP)).toHaveLength(100);
  });

  it('hundreds leave slots to a slow lane, to a new one and to quick ones', () => {
    const lanes = of(256);
    lanes.target('slow', () => SLOW_MS);
    for (const lane of ['quick', 'new']) lanes.target(lane, () => QUICK_MS);
    lanes.add(['slow', 'quick'], 1);
    lanes.runUntil(5_000);
    const hanging = names('hanging', 400);
    lanes.add(hanging.slice(0, 150), 20);
    lanes.runUntil(20_000);
    expect(new Set(underWay(lanes, hanging.slice(0, 150)))).toEqual(new Set([1]));
    lanes.add(['new'], 100);
    lanes.runUntil(21_000);
    expect(lanes.sentTo('new')).toHaveLength(100);
    lanes.add(hanging.slice(150), 20);
    lanes.runUntil(30_000);
    expect(sum(underWay(lanes, hanging))).toBe(192);
    lanes.add(['slow', 'quick'], 100);
    lanes.runUntil(50_000);
    expect(lanes.sentTo('slow', 30_000)).toHaveLength(100);
    expect(lanes.sentTo('quick', 30_000).every(({ waitedMs }) => waitedMs < 20 * QUICK_MS)).toBe(true);
  });

  it('none gets more than its share of what is lent later, and one that has nothing under way gets one', () => {
    const lanes = new SimulatedLanes({ total: 256, perLane: 64, timeoutMs: 30_000 });
    lanes.add(['first'], 2_000);
    lanes.runUntil(20_000);
    expect(lanes.underWay('first')).toBe(64);
    const later = names('later', 9);
    lanes.add(later, 2_000);
    lanes.runUntil(25_000);
    expect(Math.min(...underWay(lanes, later))).toBeGreaterThanOrEqual(1);
    lanes.runUntil(120_000);
    expect(Math.max(...underWay(lanes, ['first', ...later]))).toBeLessThanOrEqual(13);
    expect(sum(underWay(lanes, ['first', ...later]))).toBeGreaterThan(110);
  });
});

describe('a lane that answers slowly', () => {
  it('counts as one that answers when many of its runs come due at once, long after its last answer', () => {
    const lanes = of(256);
    lanes.target('slow', () => 20_000);
    lanes.add(['slow'], 1);
    lanes.runUntil(600_000);
    lanes.add(['slow'], 64);
    lanes.runUntil(610_000);
    expect(lanes.book.of('slow').pace).toMatchObject({ isSlow: true, isStalled: false });
    expect(lanes.underWay('slow')).toBe(64);
  });

  it('counts as one that answers nothing once its attempts take far longer than before', () => {
    const lanes = of(256);
    lanes.target('slow', (now) => (now < 10_000 ? SLOW_MS : null));
    lanes.add(['slow'], 1);
    lanes.runUntil(10_000);
    lanes.add(['slow'], 10);
    lanes.runUntil(15_000);
    expect(lanes.book.of('slow').pace.isSlow).toBe(true);
    lanes.runUntil(17_000);
    expect(lanes.book.of('slow').pace.isStalled).toBe(true);
    expect(lanes.book.slow.slots).toBe(0);
    expect(lanes.book.silent.slots).toBe(10);
  });

  it('leaves a slot to the next such lane, however long its attempts take', () => {
    const lanes = of(256);
    const slow = names('slow', 8);
    for (const lane of slow) lanes.target(lane, () => 1_000_000);
    lanes.add(slow, 1);
    lanes.runUntil(1_100_000);
    lanes.add(slow, 100);
    lanes.runUntil(1_110_000);
    const left = 192 - sum(underWay(lanes, slow));
    expect(left).toBeGreaterThanOrEqual(7);
    lanes.target('other', () => SLOW_MS);
    lanes.add(['other'], 20);
    lanes.runUntil(1_150_000);
    expect(lanes.sentTo('other')).toHaveLength(20);
  });
});
