import { setTimeout } from 'node:timers/promises';

/** Asks again and again until the answer is not null; the test's own time limit is the only one. */
export async function until<T>(ask: () => Promise<T | null> | T | null): Promise<T> {
  for (;;) {
    const answer = await ask();
    if (answer !== null) return answer;
    await setTimeout(20);
  }
}
