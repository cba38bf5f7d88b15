import { type Outcome, notSent, notSentForWant } from '../../core/runs/attempts/outcome.ts';
import type { Clock } from '../../runtime/clock.ts';
import { ownShortageOf } from '../../runtime/own-shortage.ts';

interface AttemptTimeOptions {
  clock: Pick<Clock, 'monotonic'>;
  timeoutSeconds: number;
  /** How much of it went by before; absent: nothing. */
  spentMs?: number;
  /** The daemon is stopping. */
  signal: AbortSignal;
}

/** The time of one attempt, from now on: for what it waits for before it sends, and for its requests together. */
export class AttemptTime {
  readonly #options: AttemptTimeOptions;
  readonly #end: number;

  constructor(options: AttemptTimeOptions) {
    this.#options = options;
    const { clock, timeoutSeconds, spentMs = 0 } = options;
    this.#end = clock.monotonic() + timeoutSeconds * 1000 - spentMs;
  }

  /** Below zero: it is over. */
  leftMs(): number {
    return this.#end - this.#options.clock.monotonic();
  }

  /** `what`: for a message. @throws WaitOver, or the promise's error */
  waitFor<T>(what: string, promise: Promise<T>): Promise<T> {
    const { signal, timeoutSeconds } = this.#options;
    return new Promise((resolve, reject) => {
      const stop = () => reject(new WaitOver('firelock stopped before the request was sent', true));
      const late = () => reject(new WaitOver(`not sent: no ${what} within ${timeoutSeconds} s`, false));
      const timer = setTimeout(late, this.leftMs());
      if (signal.aborted) stop();
      signal.addEventListener('abort', stop, { once: true });
      promise.then(resolve, reject).finally(() => {
        clearTimeout(timer);
        signal.removeEventListener('abort', stop);
      });
    });
  }
}

/** The attempt's time ended first, or the daemon stops. */
export class WaitOver extends Error {
  readonly senderStopped: boolean;

  constructor(message: string, senderStopped: boolean) {
    super(message);
    this.senderStopped = senderStopped;
  }
}

/** The outcome of an attempt that could not get what it needs before it sends. */
export function notSentFor(error: unknown): Outcome {
  const shortage = ownShortageOf(error);
  if (shortage !== null) return notSentForWant(shortage);
  const isLate = error instanceof WaitOver && !error.senderStopped;
  const message = error instanceof Error ? error.message : String(error);
  return notSent(
    { kind: isLate ? 'timeout' : 'network', message },
    error instanceof WaitOver && error.senderStopped,
  );
}
