import { describe, expect, it } from 'vitest';
import { ClaimRoom } from '../../../src/flow/dispatch/claim-room.ts';
import { LaneClaim, LaneBook } from '../../../src/flow/dispatch/lane.ts';
import { Lanes } from '../../../src/flow/dispatch/lanes.ts';
import { claimedRun } from '../../support/claims.ts';

const SLOTS = 256;
const CLAIMS = 32 * SLOTS;

/** An instance's memory, without the instance. */
function memory() {
  let now = 0;
  const book = new LaneBook();
  const room = new ClaimRoom({ book, total: SLOTS, perLane: 64 });
  const sent: LaneClaim[] = [];
  const lanes = new Lanes({
    book,
    clock: { now: () => now, monotonic: () => now },
    total: SLOTS,
    perLane: 64,
    send: (claim) => void sent.push(claim),
    mayStart: () => true,
  });
  /** As many as there is room for, at most so many. */
  const fill = (name: string, most = Infinity): LaneClaim[] => {
    const claims: LaneClaim[] = [];
    const lane = book.of(name);
    while (claims.length < most && room.take(lane)) claims.push(new LaneClaim(claimedRun({ lane: name }), lane));
    lanes.add(claims);
    return claims;
  };
  const answer = (name: string, durationMs = 5) => {
    for (const claim of sent.filter(({ lane, state }) => lane.name === name && state === 'sent')) {
      claim.state = 'settling';
      lanes.ended(claim, 'answered', durationMs);
      book.addClaims(claim.lane, -1);
    }
  };
  const show = (name: string, durationMs = 5) => {
    fill(name, 1);
    answer(name, durationMs);
  };
  const pass = (ms: number) => {
    now += ms;
    lanes.start();
  };
  return { book, room, fill, show, pass };
}

describe('claims taken ahead', () => {
  it('for a lane that has not answered yet are as many as its slots', () => {
    expect(memory().fill('new')).toHaveLength(128);
  });

  it('for a quick lane, however much it has, leave a quarter of the room to others', () => {
    const { show, fill } = memory();
    show('quick');
    expect(fill('quick').length).toBe((CLAIMS * 3) / 4);
    show('other');
    expect(fill('other').length).toBeGreaterThanOrEqual(CLAIMS / 8);
    show('third');
    expect(fill('third').length).toBeGreaterThanOrEqual(CLAIMS / 32);
  });

  it('for a run that was not put in order are none in a lane of which the last look left some', () => {
    const { book, room, show } = memory();
    for (const name of ['quick', 'other']) show(name);
    const look = (free: number) => {
      const request = { limit: 100, freePerLane: 64, freeByLane: new Map([['quick', free]]) };
      room.claimed(request, [claimedRun({ lane: 'quick' })]);
      return ['quick', 'other'].map((name) => room.takeIfNoneIsLeft(book.of(name)));
    };
    expect(look(1)).toEqual([false, true]);
    expect(look(2)).toEqual([true, true]);
  });

  it('for a lane that stands still are no more than its slots', () => {
    const { book, room, show, fill, pass } = memory();
    show('stops');
    fill('stops', 1);
    pass(1_001);
    expect(fill('stops')).toHaveLength(63);
    expect(room.surplusOf(book.of('stops'))).toEqual([]);
  });

  it('for all lanes that stand still are about what they can have under way together', () => {
    const { book, fill, pass } = memory();
    const lanes = Array.from({ length: 20 }, (_, index) => `hanging-${index}`);
    for (const lane of lanes) fill(lane, 1);
    for (let seconds = 0; seconds < 10; seconds += 1) {
      pass(1_001);
      for (const lane of lanes) fill(lane);
    }
    expect(book.all.slots).toBeLessThanOrEqual(SLOTS / 2);
    expect(book.all.slots).toBeGreaterThan(SLOTS / 2 - lanes.length);
    expect(book.all.claims - book.all.slots).toBeLessThanOrEqual(lanes.length);
  });

  it('for lanes that have not answered yet leave a quarter of the room to those that move', () => {
    const { book, show, fill } = memory();
    show('quick');
    for (let index = 0; index < 200; index += 1) fill(`new-${index}`);
    expect(book.all.claims).toBe((CLAIMS * 3) / 4);
    expect(fill('quick').length).toBeGreaterThanOrEqual(CLAIMS / 8);
  });

  it('go back as far as a lane that has begun to stand still cannot use them, the least urgent first', () => {
    const { book, room, show, fill, pass } = memory();
    show('stops');
    const claims = fill('stops');
    const lane = book.of('stops');
    expect(room.surplusOf(lane)).toEqual([]);
    pass(1_001);
    const surplus = room.surplusOf(lane);
    expect(claims.length - surplus.length).toBe(64);
    expect(surplus).toEqual(claims.slice(64));
  });
});

describe('a claim', () => {
  it('asks for no more of a lane than there is room for, and for none beyond what others may need', () => {
    const { room, show, fill, pass } = memory();
    show('quick');
    fill('hanging');
    pass(1_001);
    const request = room.request();
    expect(request?.limit).toBe(1000);
    expect(request?.freePerLane).toBe(64);
    expect(request?.freeByLane.get('hanging')).toBeLessThanOrEqual(0);
    // As of any other.
    expect(request?.freeByLane.has('quick')).toBe(false);
  });

  it('asks only for lanes that move once the others have all they may', () => {
    const { room, show, fill } = memory();
    show('quick');
    for (let index = 0; index < 200; index += 1) fill(`new-${index}`);
    const request = room.request();
    expect(request?.freePerLane).toBe(0);
    expect([...(request?.freeByLane ?? [])].filter(([, free]) => free > 0).map(([lane]) => lane)).toEqual(['quick']);
  });

  it('is made again when a moving lane that had more runs gives a claim up', () => {
    const { book, room, show } = memory();
    for (const lane of ['quick', 'busy']) show(lane);
    room.claimed({ limit: 1000, freePerLane: 64, freeByLane: new Map([['busy', 1]]) }, [
      claimedRun({ lane: 'busy' }),
      claimedRun({ lane: 'quick' }),
    ]);
    expect(['busy', 'quick'].map((lane) => room.mayHaveMore(book.of(lane)))).toEqual([true, false]);
  });

  it('is made again for lanes that stand still when most of them have nothing left to start', () => {
    const { book, room, fill, pass } = memory();
    const lanes = Array.from({ length: 8 }, (_, index) => `hanging-${index}`);
    for (const lane of lanes) fill(lane, 1);
    pass(1_001);
    room.claimed({ limit: 1000, freePerLane: 64, freeByLane: new Map([['hanging-0', 0]]) }, []);
    const mayHaveMore = () => room.mayHaveMore(book.of('hanging-1'));
    expect(mayHaveMore()).toBe(true);
    for (let times = 0; times < 50; times += 1) for (const lane of lanes) fill(lane);
    expect(book.silent).toMatchObject({ slots: 125, waiting: 8 });
    expect(mayHaveMore()).toBe(false);
  });
});
