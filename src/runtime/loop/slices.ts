import { systemClock } from '../clock.ts';

/** Does work that comes in short steps, with everything else of the process in between. */
export async function inSlices(steps: Iterator<void, void, void>): Promise<void> {
  while (steps.next().done !== true) await yieldToEventLoop();
}

/**
 * Resolves when everything else had its turn. However many wait, one of them goes on in a turn of the event loop: the steps of
 * many at once do not add up to a long one.
 */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    if (waiting.length === 1) setImmediate(nextOne);
  });
}

/**
 * For work in many steps that are short but for a few: called before each, it lets others have their turn once the steps since the
 * last one have taken a while. A turn for each would be most of what a thousand of them cost.
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
  // Behind what it wakes: that it waits again comes after the others.
  waiting.shift()?.();
  if (waiting.length > 0) setImmediate(nextOne);
}
