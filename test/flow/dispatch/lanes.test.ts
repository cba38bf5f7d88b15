import { describe, expect, it } from 'vitest';
import { LaneClaim, LaneBook } from '../../../src/flow/dispatch/lane.ts';
import { Lanes } from '../../../src/flow/dispatch/lanes.ts';
import { claimedRun } from '../../support/claims.ts';
import { SimulatedLanes, names } from '../../support/simulated-lanes.ts';

const TIMEOUT_MS = 10_000;
const QUICK_MS = 5;
const standard = () => new SimulatedLanes({ total: 256, perLane: 64, timeoutMs: TIMEOUT_MS });

/** Each has so many runs due every second. */
function fireEverySecond(lanes: SimulatedLanes, of: readonly string[], count: number, end: number): void {
  lanes.every(1000, end, () => {
    lanes.add(of, count);
  });
}

function longestWait(lanes: SimulatedLanes, of: readonly string[], since = 0): number {
  return Math.max(...of.flatMap((lane) => lanes.sentTo(lane, since).map(({ waitedMs }) => waitedMs)));
}

describe('beside targets that never answer', () => {
  it.each([5, 20, 100])('%i of them: due runs of other lanes are sent as if they were not there', (count) => {
    const END = 25_000;
    const longestBeside = (hanging: readonly string[]) => {
      const lanes = standard();
      const quick = names('quick', 100);
      for (const lane of quick) lanes.target(lane, () => QUICK_MS);
      lanes.add(hanging, 500);
      fireEverySecond(lanes, [...hanging, ...quick], 4, END);
      lanes.runUntil(END + TIMEOUT_MS);
      for (const lane of quick) expect(lanes.sentTo(lane)).toHaveLength(4 * 24);
      return longestWait(lanes, quick, 2_000);
    };
    // A quarter of the slots has it done in four times as many turns.
    expect(longestBeside(names('hanging', count))).toBeLessThanOrEqual(longestBeside([]) * 4 + 2 * QUICK_MS);
  });

  it('they hold half of all slots, each its share, and leave one to the next such lane', () => {
    const lanes = standard();
    const hanging = names('hanging', 20);
    lanes.add(hanging, 200);
    for (const at of [TIMEOUT_MS - 1, 60_000]) {
      lanes.runUntil(at);
      expect(new Set(hanging.map((lane) => lanes.underWay(lane)))).toEqual(new Set([6, 7]));
      expect(lanes.book.all.slots).toBeLessThan(128);
    }
  });

  it('a lane that has not answered yet can show that it moves', () => {
    const lanes = standard();
    lanes.add(names('hanging', 20), 500);
    lanes.runUntil(35_000);
    lanes.target('new', () => QUICK_MS);
    lanes.add(['new'], 20);
    lanes.runUntil(36_000);
    expect(longestWait(lanes, ['new'])).toBeLessThan(10 * QUICK_MS);
    expect(lanes.sentTo('new')).toHaveLength(20);
  });

  it('however many begin to hang at the same moment, others find slots before that is known', () => {
    const lanes = standard();
    const [turning, quick] = [names('turning', 100), names('quick', 100)];
    for (const lane of quick) lanes.target(lane, () => QUICK_MS);
    for (const lane of turning) lanes.target(lane, (now) => (now < 5_500 ? QUICK_MS : null));
    fireEverySecond(lanes, [...turning, ...quick], 10, 30_000);
    lanes.runUntil(30_000);
    expect(longestWait(lanes, quick)).toBeLessThan(500);
  });

  it('a slow lane that answers gets as many slots as one that hangs', () => {
    const lanes = standard();
    lanes.target('slow', () => 2_000);
    lanes.add(['slow'], 5_000);
    lanes.add(names('hanging', 5), 5_000);
    lanes.runUntil(60_000);
    expect(lanes.underWay('slow')).toBeGreaterThanOrEqual(31);
    expect(lanes.sentTo('slow', 30_000).length).toBeGreaterThanOrEqual(31 * 14);
  });
});

describe('slow lanes', () => {
  it('have nearly three quarters of the slots if only they have work, and one lane has its whole share', () => {
    const lanes = standard();
    const slow = names('slow', 5);
    for (const lane of slow) lanes.target(lane, () => 8_000);
    lanes.add(['slow-0'], 5_000);
    lanes.runUntil(30_000);
    expect(lanes.underWay('slow-0')).toBe(64);
    lanes.add(slow, 5_000);
    lanes.runUntil(90_000);
    expect(new Set(slow.map((lane) => lanes.underWay(lane)))).toEqual(new Set([36, 37]));
  });

  it('get their turn while others have more to send than there are slots', () => {
    const lanes = standard();
    const quick = names('quick', 8);
    for (const lane of quick) lanes.target(lane, () => 200);
    lanes.add(quick, 15_000);
    lanes.target('slow', () => 8_000);
    lanes.add(['slow'], 1_000);
    lanes.add(['hanging'], 1_000);
    lanes.runUntil(60_000);
    expect(lanes.underWay('slow')).toBeGreaterThanOrEqual(7);
    expect(lanes.underWay('hanging')).toBeGreaterThanOrEqual(7);
    expect(lanes.book.all.slots).toBe(256);
  });
});

describe('few slots', () => {
  it.each([1, 2, 3, 4])('%i: every lane gets its turn, and moving lanes a quarter of the time at least', (total) => {
    const lanes = new SimulatedLanes({ total, perLane: total, timeoutMs: TIMEOUT_MS });
    const END = 1_000_000;
    lanes.target('quick', () => 1_000 / 4);
    lanes.target('slow', () => 3_000);
    lanes.add(['hanging-0', 'hanging-1', 'quick', 'slow'], 5_000);
    lanes.runUntil(END);
    for (const lane of ['hanging-0', 'hanging-1', 'slow']) {
      expect(lanes.sentTo(lane).length).toBeGreaterThanOrEqual(END / TIMEOUT_MS / 10);
    }
    expect(lanes.sentTo('quick').length).toBeGreaterThanOrEqual(0.2 * 4 * (END / 1000));
  });

  it.each([1, 2, 4])('%i: a target that answers again is noticed', (total) => {
    const lanes = new SimulatedLanes({ total, perLane: total, timeoutMs: TIMEOUT_MS });
    lanes.target('quick', () => 100);
    lanes.target('back', (now) => (now < 100_000 ? null : 100));
    lanes.add(['quick'], 9_000);
    lanes.add(['hanging'], 500);
    lanes.add(['back'], 2_000);
    lanes.runUntil(100_000 + 10 * TIMEOUT_MS);
    expect(lanes.book.of('back').pace.isMoving).toBe(true);
  });
});

describe('within a lane', () => {
  it('the more urgent run goes first, then the one due first, then the one that came first', () => {
    const book = new LaneBook();
    const sent: LaneClaim[] = [];
    const clock = { now: () => 0, monotonic: () => 0 };
    const lanes = new Lanes({
      book,
      clock,
      total: 1,
      perLane: 1,
      send: (claim) => void sent.push(claim),
      mayStart: () => true,
    });
    const claim = (id: string, priority: number, dueAt = 0) =>
      new LaneClaim(claimedRun({ id, priority, dueAt }), book.of('a'));
    lanes.add([claim('first', 2)]);
    const [low, normal, high] = [2, 1, 0];
    lanes.add([claim('low', low), claim('normal', normal), claim('low, later', low)]);
    lanes.add([claim('high', high), claim('normal, earlier', normal, -1), claim('high, later', high, 1)]);
    for (let ended = 0; ended < 6; ended += 1) {
      const [last] = sent.slice(-1);
      if (last) lanes.ended(last, 'answered', 1);
    }
    expect(sent.map(({ run }) => run.id)).toEqual([
      'first',
      'high',
      'high, later',
      'normal, earlier',
      'normal',
      'low',
      'low, later',
    ]);
  });
});
