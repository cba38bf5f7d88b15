import { LRUCache } from 'lru-cache';
import type { Connection, OAuthClient } from '../../core/connections/connection.ts';
import type { Clock } from '../../runtime/clock.ts';

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

/** The access tokens of this instance. */
export interface OAuthTokens {
  /** At hand, or once it has been fetched. @throws NoToken, also the promise */
  get(client: TokenClient): string | Promise<string>;
  /** A target refused this token (401). */
  invalidate(client: TokenClient, token: string): void;
}

interface OAuthTokensDeps {
  /** Has a limit of its own: who waits may leave earlier, and it goes on for the others. @throws NoToken */
  fetch: (client: TokenClient) => Promise<FetchedToken>;
  clock: Pick<Clock, 'monotonic'>;
}

export function createOAuthTokens(deps: OAuthTokensDeps): OAuthTokens {
  return new Tokens(deps);
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

class Tokens implements OAuthTokens {
  readonly #deps: OAuthTokensDeps;
  readonly #known = new LRUCache<string, Known>({ max: MOST_KNOWN });
  readonly #underWay = new Map<string, Promise<string>>();

  constructor(deps: OAuthTokensDeps) {
    this.#deps = deps;
  }

  get(client: TokenClient): string | Promise<string> {
    const key = keyOf(client);
    const known = this.#known.get(key);
    const isInForce =
      known !== undefined && known.kind !== 'refused' && this.#deps.clock.monotonic() < known.until;
    if (!isInForce) return this.#underWay.get(key) ?? this.#fetch(key, client);
    if (known.kind === 'failed') throw known.error;
    return known.token;
  }

  /** Of many attempts with the same token, the first one counts. */
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
