import { setTimeout as delay } from 'node:timers/promises';

/** After this time it tries again what another transaction has locked. */
const AGAIN_AFTER_MS = [50, 200, 500];

/**
 * `act` answers the runs that another transaction has locked: these are tried a few times more. Answers those that are
 * left.
 */
export async function againWhileLocked<Item>(
  items: readonly Item[],
  act: (items: readonly Item[]) => Promise<Item[]>,
): Promise<Item[]> {
  let left = await act(items);
  for (const waitMs of AGAIN_AFTER_MS) {
    if (left.length === 0) break;
    await delay(waitMs);
    left = await act(left);
  }
  return left;
}
