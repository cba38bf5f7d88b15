import { setTimeout } from 'node:timers/promises';

/** What takes so long has come to a standstill, on the slowest of machines. No other limit of a test is shorter. */
export const HUNG_AFTER_MS = 120_000;

/** Asks again and again until the answer is not null; the test's own time limit is the only one. */
export async function until<T>(ask: () => Promise<T | null> | T | null): Promise<T> {
  for (;;) {
    const answer = await ask();
    if (answer !== null) return answer;
    await setTimeout(20);
  }
}
