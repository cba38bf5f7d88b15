import { LRUCache } from 'lru-cache';
import type { Connection, OAuthClient } from '../../core/connections/connection.ts';
import type { Clock } from '../../runtime/clock.ts';
import { type Outcome, notSent, notSentForWant } from '../../core/runs/attempts/outcome.ts';
import { ownShortageOf } from '../../runtime/own-shortage.ts';

/** What of a connection decides over its access tokens. */
export interface TokenClient extends Pick<Connection<string>, 'uid' | 'version' | 'edition' | 'url' | 'tls'> {
  auth: OAuthClient<string>;
}

/** Null: it logs in without an access token. */
export function clientOf(connection: Connection<string> | null): TokenClient | null {
  return connection?.auth?.type === 'oauth2' ? { ...connection, auth: connection.auth } : null;
}

export interface FetchedToken {
  token: string;
  /** Null: the server does not say. */
  lifetimeSeconds: number | null;
}

/** Why there is no access token, without anything that is secret. */
export class NoToken extends Error {}

interface OAuthTokensDeps {
  /** Has a limit of its own: who waits may leave earlier, and it goes on for the others. @throws NoToken */
  fetch: (client: TokenClient) => Promise<FetchedToken>;
  clock: Pick<Clock, 'monotonic'>;
}

const MOST_KNOWN = 1_000;
const UNSAID_LIFETIME_MS = 300_000;
/** A token is given up so long before its end, so that it does not end under way: at most a tenth of its life. */
const MARGIN_MS = 60_000;
/** Also of a token whose life is said to be 0: if that is so, the target refuses it. */
const LEAST_USE_MS = 1_000;
const FIRST_REST_MS = 2_000;
const LONGEST_REST_MS = 30_000;
/** A target that refuses every token must not have its token server asked for one at each attempt. */
const RENEWAL_REST_MS = 10_000;

type Known =
  | { kind: 'token'; token: string; until: number; renewed: boolean; fetchedAt: number }
  | { kind: 'refused' }
  | { kind: 'failed'; error: unknown; until: number; restMs: number };

/** The access tokens of this instance. */
export class OAuthTokens {
  readonly #deps: OAuthTokensDeps;
  readonly #known = new LRUCache<string, Known>({ max: MOST_KNOWN });
  readonly #underWay = new Map<string, Promise<string>>();

  constructor(deps: OAuthTokensDeps) {
    this.#deps = deps;
  }

  /** At hand, or once it has been fetched. @throws NoToken, also the promise */
  get(client: TokenClient): string | Promise<string> {
    const key = keyOf(client);
    const known = this.#known.get(key);
    const isInForce = known !== undefined && known.kind !== 'refused' && this.#deps.clock.monotonic() < known.until;
    if (!isInForce) return this.#underWay.get(key) ?? this.#fetch(key, client);
    if (known.kind === 'failed') throw known.error;
    return known.token;
  }

  /** A target refused this token (401). Of many attempts with the same token, the first one counts. */
  invalidate(client: TokenClient, token: string): void {
    const key = keyOf(client);
    const known = this.#known.get(key);
    if (known?.kind !== 'token' || known.token !== token) return;
    const isNew = known.renewed && this.#deps.clock.monotonic() < known.fetchedAt + RENEWAL_REST_MS;
    if (!isNew) this.#known.set(key, { kind: 'refused' });
  }

  #fetch(key: string, client: TokenClient): Promise<string> {
    const { clock, fetch } = this.#deps;
    const before = this.#known.get(key);
    // The lifetime counts from before the request: the server begins to count while it is under way.
    const askedAt = clock.monotonic();
    const fetching = fetch(client).then(
      ({ token, lifetimeSeconds }) => {
        const renewed = before?.kind === 'refused';
        const until = askedAt + usableMs(lifetimeSeconds);
        this.#known.set(key, { kind: 'token', token, until, renewed, fetchedAt: clock.monotonic() });
        return token;
      },
      (error: unknown) => {
        const now = clock.monotonic();
        const restMs = nextRestMs(before, now);
        this.#known.set(key, { kind: 'failed', error, until: now + restMs, restMs });
        throw error;
      },
    );
    this.#underWay.set(key, fetching);
    const end = () => this.#underWay.delete(key);
    fetching.then(end, end);
    return fetching;
  }
}

/** A changed connection and a rotated secret have other tokens. */
function keyOf({ uid, version, edition, auth }: TokenClient): string {
  return JSON.stringify([uid, version, edition, auth.clientSecret]);
}

function usableMs(lifetimeSeconds: number | null): number {
  const lifetimeMs = lifetimeSeconds === null ? UNSAID_LIFETIME_MS : lifetimeSeconds * 1000;
  return Math.max(lifetimeMs - Math.min(lifetimeMs / 10, MARGIN_MS), LEAST_USE_MS);
}

/** Twice as long as the one before, unless it has gone as long without a failure since. */
function nextRestMs(before: Known | undefined, now: number): number {
  const isAgain = before?.kind === 'failed' && now < before.until + before.restMs;
  return isAgain ? Math.min(before.restMs * 2, LONGEST_REST_MS) : FIRST_REST_MS;
}

interface TokenUse {
  tokens: Pick<OAuthTokens, 'get' | 'invalidate'>;
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
  return notSent({ kind: isLate ? 'timeout' : 'network', message }, error instanceof WaitOver && error.senderStopped);
}
