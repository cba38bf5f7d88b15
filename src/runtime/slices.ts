import { setImmediate } from 'node:timers/promises';

/** Does work that comes in short steps, with everything else of the process in between. */
export async function inSlices(steps: Iterator<void, void, void>): Promise<void> {
  while (steps.next().done !== true) await setImmediate();
}
