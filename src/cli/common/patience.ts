import { setTimeout as delay } from 'node:timers/promises';
import { CliError, EXIT } from '../exit-codes.ts';
import type { Output } from '../terminal/output.ts';

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

/** Asks a server that may be away: null while it is, which is said once. */
export function patient<T>(ask: () => Promise<T>, output: Output, signal?: AbortSignal): () => Promise<T | null> {
  let isAway = false;
  return async () => {
    try {
      const news = await ask();
      if (isAway) output.note('the server answers again');
      isAway = false;
      return news;
    } catch (error) {
      if (!(error instanceof CliError) || error.exitCode !== EXIT.unreachable) throw error;
      if (!isAway) output.note(`${error.message}; retrying`);
      isAway = true;
      if (signal) await delay(RETRY_MS, undefined, { signal });
      return null;
    }
  };
}

/** For those who do not wait themselves between two questions. */
const RETRY_MS = 2_000;
