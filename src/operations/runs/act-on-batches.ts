import { setTimeout as delay } from 'node:timers/promises';
import { type BatchFault, inHalves } from '../../runtime/loop/batch.ts';

/** After this time it tries again what another transaction has locked. */
const AGAIN_AFTER_MS = [50, 200, 500];

interface Acting<Item> {
  /** How many at once. */
  size: number;
  /** Answers those that another transaction has locked. */
  act: (items: readonly Item[]) => Promise<readonly Item[]>;
  /** Null: it ends the whole action. */
  faultOf: (error: unknown) => BatchFault | null;
}

/**
 * Acts on all of them, batch by batch. What is locked is tried a few times more, and what is refused delays no other. Answers how many are
 * left.
 */
export async function actOnBatches<Item>(items: readonly Item[], acting: Acting<Item>): Promise<number> {
  let { left, refused } = await eachBatch(items, acting);
  for (const waitMs of AGAIN_AFTER_MS) {
    if (left.length === 0) break;
    await delay(waitMs);
    const again = await eachBatch(left, acting);
    left = again.left;
    refused += again.refused;
  }
  return refused + left.length;
}

async function eachBatch<Item>(items: readonly Item[], { size, act, faultOf }: Acting<Item>) {
  const left: Item[] = [];
  let refused = 0;
  const work = async (some: readonly Item[]) => void left.push(...(await act(some)));
  const setAside = () => void (refused += 1);
  for (let first = 0; first < items.length; first += size)
    await inHalves(items.slice(first, first + size), { work, faultOf, setAside });
  return { left, refused };
}
