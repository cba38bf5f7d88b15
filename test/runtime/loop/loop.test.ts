import { describe, expect, it } from 'vitest';
import { createLoop } from '../../../src/runtime/loop/loop.ts';
import { systemClock } from '../../../src/runtime/clock.ts';
import { createEventBus } from '../../../src/runtime/event-bus.ts';
import { until } from '../../support/until.ts';

function loopOf(body: () => Promise<number>) {
  const failures: { error: unknown; retryInMs: number }[] = [];
  const events = createEventBus();
  events.subscribe((event) => {
    if (event.type === 'loopFailed') failures.push(event);
  });
  const loop = createLoop({
    name: 'test',
    body,
    clock: systemClock,
    events,
  });
  return { loop, failures };
}

describe('a loop', () => {
  it('runs one pass at a time, and at once again when woken during one', async () => {
    let passes = 0;
    let under = 0;
    const { loop } = loopOf(async () => {
      under += 1;
      expect(under).toBe(1);
      passes += 1;
      await new Promise((resolve) => setTimeout(resolve, 5));
      if (passes < 5) loop.wake();
      under -= 1;
      return 60_000;
    });
    await loop.start();
    await until(() => (passes === 5 ? true : null));
    await loop.stop();
  });

  it('outlives a pass that fails, waiting longer each time, and does not hurry when woken', async () => {
    let passes = 0;
    const { loop, failures } = loopOf(() => {
      passes += 1;
      if (passes < 4) loop.wake();
      return passes < 4 ? Promise.reject(new Error(`no ${passes}`)) : Promise.resolve(60_000);
    });
    await loop.start();
    await until(() => (passes >= 4 ? true : null));
    await loop.stop();
    expect(failures).toHaveLength(3);
    expect(failures[2]?.retryInMs).toBeGreaterThan(failures[0]?.retryInMs ?? Infinity);
  });

  it('says of each pass how it ended, and only once it has', async () => {
    const ends: string[] = [];
    const events = createEventBus();
    events.subscribe(({ type }) => ends.push(type));
    let passes = 0;
    const body = () => {
      passes += 1;
      // Work that succeeded before the pass fails says nothing about the pass.
      events.emit({ type: 'overlapsJudged', count: passes });
      return passes === 1 ? Promise.reject(new Error('no')) : Promise.resolve(Infinity);
    };
    const loop = createLoop({ name: 'test', body, clock: systemClock, events });
    await loop.start();
    await until(() => ends.includes('loopPassed') || null);
    await loop.stop();
    expect(ends).toEqual(['overlapsJudged', 'loopFailed', 'overlapsJudged', 'loopPassed']);
  });

  it('stops in the middle of a sleep, after the pass it is in', async () => {
    let finished = false;
    const { loop } = loopOf(async () => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      finished = true;
      return Infinity;
    });
    await loop.start();
    await loop.stop();
    expect(finished).toBe(true);
  });
});
