import { setTimeout as delay } from 'node:timers/promises';

const MOST_SECONDS = 10;

/** 1, 2, 4 … 10 seconds, of which half at random, so that not all workers come back at once. `random` in [0, 1). */
export function backOffMs(failures: number, random: number): number {
  return Math.min(2 ** (failures - 1), MOST_SECONDS) * 1000 * (0.5 + random / 2);
}

/** Ends early, without an error, when the signal is aborted. */
export async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  await delay(ms, undefined, signal === undefined ? {} : { signal }).catch(() => undefined);
}

/** Resolves with the answer when the signal is aborted; waits no longer once `enough` is. */
export function aborted<T>(signal: AbortSignal, answer: T, enough: AbortSignal): Promise<T> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(answer);
    else signal.addEventListener('abort', () => resolve(answer), { once: true, signal: enough });
  });
}

/** Waits for it, but not for ever. */
export async function atMost(ms: number, done: Promise<unknown>, signal?: AbortSignal): Promise<void> {
  const over = new AbortController();
  const signals = signal === undefined ? [over.signal] : [over.signal, signal];
  await Promise.race([done, pause(ms, AbortSignal.any(signals))]);
  over.abort();
}
