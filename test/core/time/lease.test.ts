import { describe, expect, it } from 'vitest';
import { afterBeat, type BeatStreak, isLeaseValid, mayDeclareDead } from '../../../src/core/time/lease.ts';

const TTL = 10;
const noon = Date.UTC(2026, 10, 20, 12);

describe('a lease', () => {
  const sent = { monotonic: 1_000, wall: noon };
  const after = (monotonicMs: number, wallMs = monotonicMs) =>
    isLeaseValid(sent, { monotonic: 1_000 + monotonicMs, wall: noon + wallMs }, TTL);

  it('is valid until two seconds before the others may declare the instance dead', () => {
    expect(after(0)).toBe(true);
    expect(after(7_999)).toBe(true);
    expect(after(8_000)).toBe(false);
    expect(isLeaseValid(null, sent, TTL)).toBe(false);
  });
  it('does not outlive a suspension, in which the monotonic clock stood still', () => {
    expect(after(100, 60_000)).toBe(false);
    expect(after(100, 1_200)).toBe(false);
  });
  it('is not trusted after a step of the wall clock, in either direction', () => {
    expect(after(100, 3_600_000)).toBe(false);
    expect(after(100, -3_600_000)).toBe(false);
    expect(after(2_000, 1_500)).toBe(true);
  });
});

describe('declaring others dead', () => {
  /** Beats every 2 s of the monotonic clock, answered within 10 ms. */
  function beats(from: number, count: number, databaseAhead = 0, streak: BeatStreak | null = null): BeatStreak {
    let state = streak;
    for (let n = 0; n < count; n += 1) {
      const sentAt = from + n * 2_000;
      const beat = { sentAt, answeredAt: sentAt + 10, databaseNow: noon + sentAt + databaseAhead };
      state = afterBeat(state, beat, TTL);
    }
    if (!state) throw new Error('no beat');
    return state;
  }

  it('takes a whole TTL of beats of one’s own', () => {
    expect(mayDeclareDead(beats(0, 5), TTL)).toBe(false);
    expect(mayDeclareDead(beats(0, 6), TTL)).toBe(true);
  });
  it('begins anew after a gap, as an outage leaves for every instance', () => {
    const streak = beats(0, 20);
    const after = beats(60_000, 5, 0, streak);
    expect(mayDeclareDead(after, TTL)).toBe(false);
    expect(mayDeclareDead(beats(70_000, 1, 0, after), TTL)).toBe(true);
  });
  it('begins anew when the database’s clock is set, in either direction', () => {
    for (const step of [3_600_000, -3_600_000, 1_500]) {
      const after = beats(40_000, 5, step, beats(0, 20));
      expect(mayDeclareDead(after, TTL)).toBe(false);
      expect(mayDeclareDead(beats(50_000, 1, step, after), TTL)).toBe(true);
    }
  });
  it('is not delayed by a beat that took long, or a clock that is a little off', () => {
    const streak = beats(0, 20);
    const late = afterBeat(streak, { sentAt: 40_000, answeredAt: 42_500, databaseNow: noon + 40_200 }, TTL);
    expect(mayDeclareDead(late, TTL)).toBe(true);
    expect(mayDeclareDead(beats(40_000, 1, 900, streak), TTL)).toBe(true);
  });
});
