import { describe, expect, it } from 'vitest';
import { createLanePace } from '../../src/flow/lane-pace.ts';

/** A clock that stands until it is told to go on. */
function settable() {
  let at = 0;
  return { clock: { now: () => at, monotonic: () => at }, pass: (ms: number) => (at += ms) };
}

describe('how far ahead a lane is claimed', () => {
  it('is as many as its slots, as long as it has shown nothing', () => {
    const { clock } = settable();
    expect(createLanePace(clock, 64).ahead('a')).toBe(64);
  });

  it('is half a second of work at its pace, within bounds', () => {
    const { clock } = settable();
    const paced = (durationMs: number): number => {
      const pace = createLanePace(clock, 64);
      pace.began('a');
      pace.ended('a', durationMs);
      return pace.ahead('a');
    };
    expect([1, 100, 2000, 60_000].map(paced)).toEqual([4032, 320, 16, 0]);
  });

  it('shrinks while nothing ends, whatever the lane was before', () => {
    const { clock, pass } = settable();
    const pace = createLanePace(clock, 64);
    pace.began('a');
    pace.ended('a', 2);
    expect(pace.ahead('a')).toBe(4032);
    pace.began('a');
    pass(1000);
    expect(pace.ahead('a')).toBe(32);
    pass(39_000);
    expect(pace.ahead('a')).toBe(0);
    pace.ended('a', 30_000);
    expect(pace.ahead('b')).toBe(64);
  });
});
