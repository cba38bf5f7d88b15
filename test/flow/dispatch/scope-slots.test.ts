import { describe, expect, it } from 'vitest';
import { type ScopeShares, parseScopeShares } from '../../../src/core/access/scope-shares.ts';
import { ClaimRoom } from '../../../src/flow/dispatch/claim-room.ts';
import { LaneBook } from '../../../src/flow/dispatch/lane.ts';
import { ATTACK } from '../../support/runner/attack.ts';
import { SimulatedLanes, names } from '../../support/simulated-lanes.ts';

const TOTAL = 64;
/** An eighth of the slots is kept for scopes with less under way than their share of it. */
const KEPT = TOTAL / 8;

function sharing(text: string, perLane = TOTAL) {
  const [scopeShares] = parseScopeShares(text);
  const lanes = new SimulatedLanes({ total: TOTAL, perLane, timeoutMs: 30_000, scopeShares });
  const of = (prefix: string, count: number) => names(prefix, count).map((host) => `http ${host} @${prefix}`);
  const slots = (prefix: string) => lanes.book.scopes.find((scope) => scope.prefix === prefix)?.slots ?? NaN;
  /** They answer after so long; and have answered once, so that they count as moving. */
  const show = (those: readonly string[], ms: number) => {
    for (const lane of those) lanes.target(lane, () => ms);
    lanes.add(those, 1);
    lanes.runUntil(lanes.now + ms * those.length + ms);
  };
  return { lanes, of, slots, show };
}

describe('scopes that have more to send than there are slots', () => {
  it('have slots by their weights, however many lanes each has', () => {
    const { lanes, of, slots, show } = sharing('a.:3,b.:1');
    const [a, b] = [of('a.', 2), of('b.', 100)];
    show([...a, ...b], 10);
    for (const lane of [...a, ...b]) lanes.target(lane, () => 500);
    lanes.add(b, 40);
    lanes.add(a, 2_000);
    lanes.runUntil(lanes.now + 3_000);
    expect(slots('a.') + slots('b.')).toBeGreaterThanOrEqual(TOTAL - KEPT);
    expect(slots('a.') / slots('b.')).toBeGreaterThan(2.5);
    expect(slots('a.') / slots('b.')).toBeLessThan(3.5);
  });

  it('leave what they do not use to the others', () => {
    const { lanes, of, slots, show } = sharing('a.:1,b.:1,c.:8');
    const [a, b] = [of('a.', 60), of('b.', 3)];
    show([...a, ...b], 10);
    for (const lane of [...a, ...b]) lanes.target(lane, () => 500);
    lanes.add(b.slice(0, 1), 4);
    lanes.add(a, 1_000);
    lanes.runUntil(lanes.now + 100);
    expect(slots('b.')).toBe(4);
    expect(slots('a.')).toBeGreaterThanOrEqual(TOTAL - KEPT - 4);
  });
});

describe('the next run of a scope', { tags: [ATTACK] }, () => {
  it('finds a slot at once, whatever another scope has due in a thousand lanes', () => {
    const { lanes, of, show } = sharing('a.:1,b.:1');
    const [a, b] = [of('a.', 1_000), of('b.', 1)];
    show([...a, ...b], 5);
    for (const lane of a) lanes.target(lane, () => 800);
    lanes.add(a, 100);
    const began = lanes.now + 2_000;
    for (let n = 0; n < 50; n += 1) lanes.at(began + n * 130, () => lanes.add(b, 1));
    lanes.runUntil(began + 50 * 130 + 100);
    const sent = b.flatMap((lane) => lanes.sentTo(lane, began));
    expect(sent).toHaveLength(50);
    expect(Math.max(...sent.map(({ waitedMs }) => waitedMs))).toBe(0);
  });

  it('finds one where all targets of the other scope have stopped to answer, and where its own lane is new', () => {
    const { lanes, of, show } = sharing('a.:1,b.:1');
    const a = of('a.', 500);
    show(a, 5);
    for (const lane of a) lanes.target(lane, () => null);
    lanes.add(a, 20);
    lanes.runUntil(lanes.now + 10_000);
    const b = of('b.', 5);
    for (const lane of b) lanes.target(lane, () => 5);
    const began = lanes.now;
    lanes.add(b, 20);
    lanes.runUntil(began + 5_000);
    expect(b.flatMap((lane) => lanes.sentTo(lane, began))).toHaveLength(100);
  });
});

it('slots come to the weighted max-min share, whatever the scopes want', () => {
  // A small generator, so that a failure can be repeated.
  let seed = 7;
  const random = (most: number) => (seed = (seed * 48_271) % 2_147_483_647) % most;
  for (let round = 0; round < 200; round += 1) {
    const wants = [0, 1, 2, 3].map(() => random(40));
    const weights = [0, 1, 2, 3].map(() => 1 + random(5));
    const prefixes = wants.map((_, index) => `s${index}.`);
    const { lanes, of, slots } = sharing(
      prefixes.map((prefix, index) => `${prefix}:${weights[index]}`).join(),
    );
    const sets = prefixes.map((prefix, index) => of(prefix, wants[index] ?? 0));
    for (const lane of sets.flat()) lanes.target(lane, () => 1);
    lanes.add(sets.flat(), 1);
    lanes.runUntil(lanes.now + 100);
    for (const lane of sets.flat()) lanes.target(lane, () => 10_000);
    lanes.add(sets.flat(), 1);
    const got = prefixes.map(slots);
    const used = got.reduce((sum, count) => sum + count, 0);
    const wanted = wants.reduce((sum, count) => sum + count, 0);
    // No slot beyond the kept ones is idle while somebody could use it.
    expect(used).toBeGreaterThanOrEqual(Math.min(wanted, TOTAL - KEPT - prefixes.length));
    const isWaiting = got.map((count, index) => count < (wants[index] ?? 0));
    // Nobody has more for its weight than one who waits, but for one slot.
    const shares = got.map((count, index) => ({ count, weight: weights[index] ?? 1 }));
    const mostOfOthers = Math.max(
      ...shares.map(({ count, weight }) => (count <= 1 ? 0 : (count - 1) / weight)),
    );
    const leastOfWaiting = Math.min(
      ...shares.filter((_, index) => isWaiting[index]).map(({ count, weight }) => (count + 1) / weight),
    );
    expect(mostOfOthers).toBeLessThanOrEqual(leastOfWaiting);
  }
});

describe('claims ahead', () => {
  const roomOf = (scopeShares: ScopeShares) => {
    const book = new LaneBook(scopeShares);
    return { book, room: new ClaimRoom({ book, total: TOTAL, perLane: TOTAL }) };
  };

  it('of one scope leave room for those of another, in whatever lanes', { tags: [ATTACK] }, () => {
    const { book, room } = roomOf(parseScopeShares('a.:1,b.:3')[0]);
    for (let lane = 0; lane < 1_000; lane += 1) while (room.take(book.of(`http a-${lane} @a.`)));
    const ofScope = (prefix: string) => room.request()?.scopes?.find((scope) => scope.prefix === prefix);
    expect(ofScope('a.')).toMatchObject({ takesNewLanes: false });
    expect(ofScope('b.')?.free).toBeGreaterThanOrEqual(TOTAL);
    expect(ofScope('b.')).toMatchObject({ weight: 3, takesNewLanes: true });
    expect(room.take(book.of('http b @b.'))).toBe(true);
    expect(room.take(book.of('http of-nobody'))).toBe(true);
  });

  it('are asked for without a word about scopes where none are configured', () => {
    expect(roomOf([]).room.request()).not.toHaveProperty('scopes');
  });
});
