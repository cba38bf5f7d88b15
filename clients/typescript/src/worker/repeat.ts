import { Problem } from '../problem.ts';

const MOST_SECONDS = 30;

/** Asking again is of no use: it was understood and refused. A token can be set right while the work goes on. */
export function isFinal(error: unknown): boolean {
  return error instanceof Problem && !error.mayPass && error.status !== 401 && error.status !== 403;
}

/** What the daemon asks for, else 1, 2, 4 … 30, of which half at random, so that not all workers come back at once. */
export function secondsUntilAgain(error: unknown, failures: number): number {
  const asked = error instanceof Problem ? error.retryAfterSeconds : null;
  if (asked !== null) return Math.min(asked, MOST_SECONDS);
  return Math.min(2 ** (failures - 1), MOST_SECONDS) * (0.5 + Math.random() / 2);
}

/** Resolves early when the signal is aborted. */
export function pause(seconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, signal?.aborted === true ? 0 : seconds * 1000);
    signal?.addEventListener('abort', done);
  });
}

/** Until it succeeds, is refused for good, or has failed `tries` times. @throws the last error */
export async function untilTaken(
  make: () => Promise<unknown>,
  { tries = Infinity, onError }: { tries?: number; onError: (error: unknown) => void },
): Promise<void> {
  for (let failures = 1; ; failures += 1) {
    try {
      await make();
      return;
    } catch (error) {
      if (isFinal(error) || failures >= tries) throw error;
      onError(error);
      await pause(secondsUntilAgain(error, failures));
    }
  }
}

/** Now and then, never twice at once; answers what ends it. The action does not throw. */
export function every(seconds: number, action: () => Promise<void>): () => void {
  let isUnderWay = false;
  const timer = setInterval(() => {
    if (isUnderWay) return;
    isUnderWay = true;
    void action().finally(() => (isUnderWay = false));
  }, seconds * 1000);
  return () => clearInterval(timer);
}
