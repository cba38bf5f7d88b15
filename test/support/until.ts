import { setTimeout } from 'node:timers/promises';

/** What takes so long has come to a standstill, on the slowest of machines. No other limit of a test is shorter. */
export const HUNG_AFTER_MS = 120_000;

/** Between two questions: soon for what happens soon, and seldom enough that the questions leave the processor to what they ask about. */
const FIRST_PAUSE_MS = 5;
const LONGEST_PAUSE_MS = 100;

/** Asks again and again until the answer is not null. Of a test its own time limit is the only one. */
export async function until<T>(ask: () => Promise<T | null> | T | null, limitMs = Infinity): Promise<T> {
  const limit = performance.now() + limitMs;
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(1.5 * pause, LONGEST_PAUSE_MS)) {
    const answer = await ask();
    if (answer !== null) return answer;
    if (performance.now() >= limit) throw new Error(`did not happen within ${limitMs / 1000} s`);
    await setTimeout(pause);
  }
}
