import { describe, expect, it } from 'vitest';
import { type AttemptEnd, LanePace, type PacedAttempt } from '../../../src/flow/dispatch/lane-pace.ts';

function begin(pace: LanePace): PacedAttempt {
  const attempt = { answersBefore: 0, hangs: false };
  pace.began(attempt);
  return attempt;
}

function shown(...ends: [AttemptEnd, number][]): LanePace {
  const pace = new LanePace();
  for (const [end, durationMs] of ends) pace.ended(begin(pace), end, durationMs);
  return pace;
}

describe('how far ahead a lane is claimed', () => {
  it('is as many as its slots until it has answered', () => {
    expect(new LanePace().ahead(64)).toBe(64);
  });

  it('is a second of work at its pace, within bounds', () => {
    const paced = (durationMs: number): number => shown(['answered', durationMs]).ahead(64);
    expect([1, 100, 2000, 60_000].map(paced)).toEqual([8128, 640, 32, 1]);
  });

  it('is nothing while its attempts hang, whatever the lane was before', () => {
    const pace = shown(['answered', 2]);
    expect(pace.ahead(64)).toBe(8128);
    pace.hangs(begin(pace));
    expect(pace.ahead(64)).toBe(0);
  });
});

describe('a lane moves', () => {
  it('once it has answered in short time', () => {
    expect(new LanePace().isMoving).toBe(false);
    expect(shown(['answered', 20]).isMoving).toBe(true);
    expect(shown(['answered', 5_000]).isMoving).toBe(false);
  });

  it('no longer when an attempt hangs or times out and nothing has been answered since it began', () => {
    const hangs = shown(['answered', 20]);
    const attempt = begin(hangs);
    hangs.hangs(attempt);
    expect(hangs.isMoving).toBe(false);
    hangs.ended(attempt, 'timedOut', 10_000);
    expect(hangs.isMoving).toBe(false);
    expect(shown(['answered', 20], ['timedOut', 300]).isMoving).toBe(false);
    // Of a lane that has shown nothing else, that is known from then on.
    expect(shown(['timedOut', 300]).isNew).toBe(false);
  });

  it('again at the first quick answer after it stood still, however long that was', () => {
    const pace = shown(['answered', 20]);
    for (let times = 0; times < 10; times += 1) pace.ended(begin(pace), 'timedOut', 30_000);
    expect(pace.isMoving).toBe(false);
    pace.ended(begin(pace), 'answered', 20);
    expect(pace.isMoving).toBe(true);
  });

  it('again soon after all attempts were slow for a moment, for which it may not be to blame', () => {
    const slow = shown(['answered', 20], ['answered', 20_000]);
    expect(slow.isMoving).toBe(false);
    slow.ended(begin(slow), 'answered', 20);
    slow.ended(begin(slow), 'answered', 20);
    expect(slow.isMoving).toBe(true);
  });

  it('while one attempt hangs and others are answered, and owes the slot of that one', () => {
    const pace = shown(['answered', 20]);
    const hanging = begin(pace);
    pace.ended(begin(pace), 'answered', 20);
    pace.hangs(hanging);
    expect(pace).toMatchObject({ isMoving: true, unansweredSlots: 1 });
    begin(pace);
    expect(pace.unansweredSlots).toBe(2);
  });

  it('or not, whatever attempts of its could not be sent', () => {
    expect(shown(['unsent', 5_000]).isNew).toBe(true);
    const pace = shown(['answered', 20], ['unsent', 5_000]);
    expect(pace).toMatchObject({ isMoving: true, unansweredSlots: 0 });
  });
});
