import type { OAuthClient } from '../../core/connections/connection.ts';
import { originOf } from '../../core/schedules/schedule.ts';
import type { Outcome } from '../../core/runs/attempts/outcome.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { EventBus } from '../../runtime/event-bus.ts';
import type { AddressBlocked } from '../address-guard.ts';
import { Exchange, type WholeAnswer } from '../http-exchange.ts';
import type { HttpPools, TlsOwner } from '../http-pool.ts';
import { type HttpRequest, parseAddress } from '../http-request.ts';
import { type FetchedToken, type TokenClient, NoToken } from './oauth-tokens.ts';

interface TokenCallsDeps {
  /**
   * Opened as those of targets: the address guard, the resolver and the egress proxy hold for token servers too. Of their own,
   * so that no token waits in line behind slow requests to a target at the same origin.
   */
  pools: HttpPools;
  clock: Clock;
  userAgent: string;
  /** Gets events about blocked addresses, which the errors do not name. */
  events?: EventBus | undefined;
}

const LIMIT_SECONDS = 10;
const MOST_CHARACTERS = 16 * 1024;

/** Asks token servers for access tokens by client credentials (RFC 6749, 4.4). */
export class TokenCalls {
  readonly #deps: TokenCallsDeps;
  readonly #underWay = new Set<Exchange>();

  constructor(deps: TokenCallsDeps) {
    this.#deps = deps;
  }

  /** Ends after 10 s at the latest. @throws NoToken, whose message has neither the secret nor what was answered */
  async fetch(client: TokenClient): Promise<FetchedToken> {
    const { request, owner } = prepared(client, this.#deps.userAgent);
    return tokenIn(await this.#exchange(client, request, owner));
  }

  /** The daemon is stopping. */
  stop(): void {
    for (const exchange of [...this.#underWay]) exchange.stop();
  }

  #exchange(client: TokenClient, request: HttpRequest, owner: TlsOwner | null): Promise<WholeAnswer> {
    const { pools, clock } = this.#deps;
    return new Promise((resolve, reject) => {
      const exchange = new Exchange({
        request: { head: request, finish: () => request },
        pool: pools.poolOf(request.origin, owner),
        clock,
        timeoutSeconds: LIMIT_SECONDS,
        // Rarely needed again, and a kept one may have grown stale.
        freshConnection: true,
        judging: { rules: null, delivery: 'atLeastOnce', asked: false },
        mayStart: () => true,
        onAnswer: resolve,
        onEnd: (ended, outcome) => {
          this.#underWay.delete(ended);
          if (ended.blockedBy !== null) this.#reportBlocked(client, request, ended.blockedBy);
          // After an answer this changes nothing.
          reject(new NoToken(`no access token: ${reasonOf(outcome)}`, { cause: lackOf(outcome) }));
        },
      });
      this.#underWay.add(exchange);
      exchange.begin();
    });
  }

  #reportBlocked({ uid }: TokenClient, { origin }: HttpRequest, { address, because }: AddressBlocked): void {
    const type = 'tokenServerBlocked';
    this.#deps.events?.emit({ type, connectionUid: uid, origin, address, because });
  }
}

/** @throws NoToken if the URL of the token server is none, which only another program can store */
function prepared(client: TokenClient, userAgent: string): { request: HttpRequest; owner: TlsOwner | null } {
  const { auth } = client;
  try {
    return { request: requestOf(auth, userAgent), owner: ownerOf(client) };
  } catch {
    throw new NoToken('no access token: the URL of the token server is none');
  }
}

function requestOf(
  { tokenUrl, clientId, clientSecret, scope, audience }: OAuthClient<string>,
  userAgent: string,
): HttpRequest {
  const form = new URLSearchParams({ grant_type: 'client_credentials' });
  if (scope !== null) form.set('scope', scope);
  if (audience !== null) form.set('audience', audience);
  const credentials = Buffer.from(`${formEncoded(clientId)}:${formEncoded(clientSecret)}`).toString('base64');
  return {
    ...parseAddress(tokenUrl),
    method: 'POST',
    headers: [
      ...['user-agent', userAgent],
      ...['accept', 'application/json'],
      ...['authorization', `Basic ${credentials}`],
      ...['content-type', 'application/x-www-form-urlencoded'],
    ],
    body: form.toString(),
  };
}

/** RFC 6749, 2.3.1: otherwise a colon in the id would end it. */
function formEncoded(text: string): string {
  return new URLSearchParams([['', text]]).toString().slice(1);
}

/**
 * At the origin of the connection's URL, the connection's own TLS settings hold. At another one, the client certificate is not shown: it is
 * made for the system, and would tell a stranger who we are. The connection's authority is trusted there as well, since a private
 * system often has a private token server; but beside the well-known ones, since it as often has a public one. That
 * authority could have the client secret anyway, by posing as the system.
 */
function ownerOf({ uid, url, tls, auth }: TokenClient): TlsOwner | null {
  if (tls === null) return null;
  if (originOf(auth.tokenUrl) === originOf(url)) return { uid, tls };
  return tls.ca === null ? null : { uid, tls: { alsoTrusted: tls.ca } };
}

/** Whoever has no token then, lacks the same. */
function lackOf(outcome: Outcome): Error | undefined {
  if (outcome.kind !== 'transient' || outcome.shortage === undefined) return undefined;
  return Object.assign(new Error(outcome.error.message), { code: outcome.shortage });
}

function reasonOf(outcome: Outcome): string {
  return 'error' in outcome ? `the token server: ${outcome.error.message}` : 'the token server gave no answer';
}

/** @throws NoToken */
function tokenIn({ statusCode, body }: WholeAnswer): FetchedToken {
  const fields = fieldsOf(body);
  const answered = `no access token: the token server answered ${statusCode}`;
  if (statusCode < 200 || statusCode >= 300 || fields.error !== undefined)
    throw new NoToken(answered + codeIn(fields.error));
  const { access_token: token, token_type: type, expires_in: lifetime } = fields;
  if (typeof token !== 'string' || token === '') throw new NoToken(`${answered} without access_token`);
  if (typeof type !== 'string' || type.toLowerCase() !== 'bearer')
    throw new NoToken(`${answered} with a token_type that is not Bearer`);
  if (token.length > MOST_CHARACTERS || !SENDABLE.test(token))
    throw new NoToken(`${answered} with a token that no header can carry`);
  return { token, lifetimeSeconds: secondsOf(lifetime) };
}

interface TokenFields {
  access_token?: unknown;
  token_type?: unknown;
  expires_in?: unknown;
  error?: unknown;
}

function fieldsOf(body: Buffer): TokenFields {
  try {
    const value: unknown = JSON.parse(body.toString());
    return typeof value === 'object' && value !== null ? value : {};
  } catch {
    return {};
  }
}

/** A server might put anything here, also what was sent to it, in whatever form: so only the codes of RFC 6749, 5.2 are repeated. */
function codeIn(error: unknown): string {
  return typeof error === 'string' && CODES.has(error) ? ` (${error})` : '';
}

const CODES = new Set([
  ...['invalid_request', 'invalid_client', 'invalid_grant'],
  ...['unauthorized_client', 'unsupported_grant_type', 'invalid_scope'],
]);

/** One word of visible ASCII. */
const SENDABLE = /^[\x21-\x7e]+$/;

/** Some servers write the number as text. */
function secondsOf(lifetime: unknown): number | null {
  const seconds = typeof lifetime === 'string' && /^\d+$/.test(lifetime) ? Number(lifetime) : lifetime;
  return typeof seconds === 'number' && Number.isFinite(seconds) && seconds >= 0 ? seconds : null;
}
