import { setTimeout } from 'node:timers/promises';

/** What takes so long has come to a standstill, on the slowest of machines. No other limit of a test is shorter. */
export const HUNG_AFTER_MS = 120_000;

/** Asks again and again until the answer is not null. Of a test its own time limit is the only one. */
export async function until<T>(ask: () => Promise<T | null> | T | null, limitMs = Infinity): Promise<T> {
  for (const limit = performance.now() + limitMs; ;) {
    const answer = await ask();
    if (answer !== null) return answer;
    if (performance.now() >= limit) throw new Error(`did not happen within ${limitMs / 1000} s`);
    await setTimeout(20);
  }
}
