import { setTimeout as delay } from 'node:timers/promises';
import { CliError, EXIT } from '../exit-codes.ts';
import type { Output } from '../terminal/output.ts';

/** Asks a server that may be away: null while it is, which is said once. */
export function patient<T>(
  ask: () => Promise<T>,
  output: Output,
  signal?: AbortSignal,
): () => Promise<T | null> {
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
