import { notSent, notSentForWant, type Outcome } from '../../core/runs/attempts/outcome.ts';
import type { OAuthTokens, TokenClient } from './oauth-tokens.ts';
import type { Clock } from '../../runtime/clock.ts';
import { ownShortageOf } from '../../runtime/own-shortage.ts';

interface TokenUse {
  tokens: OAuthTokens;
  client: TokenClient;
  /** `send` keeps to it as well. */
  time: AttemptTime;
}

/**
 * Sends with an access token, and once more with another one if the target refuses the first (401): it may have ended
 * early, or been revoked. At most once as well, since a 401 says that nothing was done. Never throws, unless `send` does.
 */
export async function withToken(use: TokenUse, send: (token: string) => Promise<Outcome>): Promise<Outcome> {
  const { tokens, client } = use;
  let token: string;
  try {
    token = await tokenInTime(use);
  } catch (error) {
    return notSentFor(error);
  }
  const first = await send(token);
  if (!isRefused(first)) return first;
  tokens.invalidate(client, token);
  let another: string;
  try {
    another = await tokenInTime(use);
  } catch (error) {
    return refusedWithoutAnother(first, error);
  }
  return another === token ? first : send(another);
}

/** Why there is no token to send with; null: there is one. Never throws. */
export async function faultOfToken(use: TokenUse): Promise<Outcome | null> {
  try {
    await tokenInTime(use);
    return null;
  } catch (error) {
    return notSentFor(error);
  }
}

function tokenInTime({ tokens, client, time }: TokenUse): string | Promise<string> {
  const token = tokens.get(client);
  return typeof token === 'string' ? token : time.waitFor('access token', token);
}

type Refused = Extract<Outcome, { kind: 'rejected' | 'transient' }>;

/** However the target's rules judge a 401, unless they call it a success. */
function isRefused(outcome: Outcome): outcome is Refused {
  return (outcome.kind === 'rejected' || outcome.kind === 'transient') && outcome.statusCode === 401;
}

/** Not the final 401: with a token that can be had later, the target may take the run, which it did not take. */
function refusedWithoutAnother({ statusCode, body }: Refused, error: unknown): Outcome {
  const reason = error instanceof Error ? error.message : String(error);
  return {
    kind: 'transient',
    error: { kind: 'http', message: `the target answered 401, and then: ${reason}`, statusCode: 401 },
    statusCode,
    body,
    retryAfterSeconds: null,
    byRule: true,
    senderStopped: error instanceof WaitOver && error.senderStopped,
  };
}

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
class WaitOver extends Error {
  readonly senderStopped: boolean;

  constructor(message: string, senderStopped: boolean) {
    super(message);
    this.senderStopped = senderStopped;
  }
}

/** The outcome of an attempt that could not get what it needs before it sends. */
function notSentFor(error: unknown): Outcome {
  const shortage = ownShortageOf(error);
  if (shortage !== null) return notSentForWant(shortage);
  const isLate = error instanceof WaitOver && !error.senderStopped;
  const message = error instanceof Error ? error.message : String(error);
  return notSent(
    { kind: isLate ? 'timeout' : 'network', message },
    error instanceof WaitOver && error.senderStopped,
  );
}
