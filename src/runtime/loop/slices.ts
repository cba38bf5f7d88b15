import { systemClock } from '../clock.ts';

/** Does work in short steps, and lets the rest of the process run in between. */
export async function inSlices(steps: Iterator<void, void, void>): Promise<void> {
  while (steps.next().done !== true) await yieldToEventLoop();
}

/**
 * Resolves when the rest of the process has had its turn. One waiter goes on in each turn of the event loop, so that
 * the steps of many waiters do not add up to a long one.
 */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    if (waiting.length === 1) setImmediate(nextOne);
  });
}

/**
 * For work in many steps, nearly all short. Called before each step, it gives others a turn once the steps since the last turn have
 * taken a while. A turn before each step would cost more than the steps.
 */
export function createPace(clock = systemClock): () => Promise<void> | undefined {
  let turnEndsAt = clock.monotonic() + TURN_MS;
  return () => {
    if (clock.monotonic() < turnEndsAt) return undefined;
    return yieldToEventLoop().then(() => {
      turnEndsAt = clock.monotonic() + TURN_MS;
    });
  };
}

const TURN_MS = 2;

const waiting: (() => void)[] = [];

function nextOne(): void {
  // After the waiter that it wakes, which may wait again.
  waiting.shift()?.();
  if (waiting.length > 0) setImmediate(nextOne);
}

/** After a slice of one user's volume, a loop rests for three times as long as that took: three quarters of the time are for others. */
const TIMES_ITS_WORK = 3;
const MAX_REST_MS = 500;

/** How many ms to rest after a slice that took so many. */
export function restAfter(tookMs: number): number {
  return Math.min(MAX_REST_MS, TIMES_ITS_WORK * tookMs);
}
