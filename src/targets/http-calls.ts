import { notSent, type Outcome } from '../core/runs/attempts/outcome.ts';
import type { Connection } from '../core/connections/connection.ts';
import type { HttpCall } from '../core/schedules/schedule.ts';
import type { EgressProxy } from '../config/egress-proxy.ts';
import type { Clock } from '../runtime/clock.ts';
import type { EventBus } from '../runtime/event-bus.ts';
import { Line } from '../runtime/loop/line.ts';
import type { Resolve } from '../runtime/names/resolve.ts';
import { createResolver } from '../runtime/names/resolver.ts';
import { type AddressBlocked, type AddressGuard, createAddressGuard } from './address-guard.ts';
import type { Judging } from './http-answer.ts';
import { BodyRoom } from './body-room.ts';
import { notBuilt } from './exchange-end.ts';
import { createDialWith } from './http-connect.ts';
import { Exchange } from './http-exchange.ts';
import { type TlsOwner, HttpPools } from './http-pool.ts';
import { beginRequest, type BegunRequest, type PreparedTarget, remembered, type RequestHead } from './http-request.ts';
import { type TokenClient, AttemptTime, clientOf, faultOfToken, OAuthTokens, withToken } from './login/oauth-tokens.ts';
import { TokenCalls } from './login/token-calls.ts';
import type { Attempt } from './target.ts';

export interface HttpTargetDeps {
  clock: Clock;
  /** Named in the user agent. */
  version: string;
  connectionsPerOrigin: number;
  /** How many attempts there are at once: as many connections of all origins may be kept idle. */
  concurrency?: number;
  /** The longest time that a kept connection is idle. */
  maxIdleMs?: number;
  /** Judges each address before a connection to it is opened; absent: denies the default ranges. */
  guard?: AddressGuard;
  /** Absent: resolves names as the machine does. */
  resolve?: Resolve;
  /** Absent: targets are called directly. */
  proxy?: EgressProxy | null;
  /** Gets events about blocked addresses. */
  events?: EventBus;
  /** Absent: 64 MiB. */
  bodyRoom?: BodyRoom;
}

/** A call, and how it is sent and judged. */
export interface SendOptions {
  call: HttpCall<string>;
  prepare: () => PreparedTarget;
  spanId: string;
  judging: Judging;
  freshConnection: boolean;
  signal: AbortSignal;
}

/** Beside what a call needs anyway: how a connection logs in by OAuth. */
interface SendWith extends SendOptions {
  accessToken?: string;
  /** What is left of the attempt's time; absent: all of it. */
  leftMs?: number;
}

const CONCURRENCY = 256;
/** Lookups and cancel calls beside the attempts: no attempt is refused the look-up of its name. */
const OTHER_CALLS = 1_000;
const MAX_IDLE_MS = 30_000;

/** Sends the calls of targets over kept connections, and logs in where their connection asks for it. */
export class HttpCalls {
  readonly #deps: HttpTargetDeps;
  readonly #userAgent: string;
  readonly #pools: HttpPools;
  /** Of messages of notifiers: they wait for no connection that runs to the same origin have. */
  readonly #messagePools: HttpPools;
  /** Of runs: messages are few at once. */
  readonly #room: BodyRoom;
  readonly #tokenCalls: TokenCalls;
  readonly #tokens: OAuthTokens;
  /** One listener per signal rather than per attempt: thousands of attempts share the signal that the daemon stops. */
  readonly #bySignal = new WeakMap<AbortSignal, Line<Exchange>>();
  #underWay = 0;
  #closing = false;
  #onIdle: (() => void) | null = null;

  constructor(deps: HttpTargetDeps) {
    this.#deps = deps;
    this.#userAgent = `firelock/${deps.version}`;
    const { guard = createAddressGuard(), proxy = null, concurrency = CONCURRENCY } = deps;
    const { resolve = createResolver({ mostAtOnce: concurrency + OTHER_CALLS }) } = deps;
    const { clock, connectionsPerOrigin, maxIdleMs = MAX_IDLE_MS } = deps;
    const dialWith = createDialWith({ guard, resolve, proxy });
    const pools = () => new HttpPools({ dialWith, connectionsPerOrigin, mostIdle: concurrency, maxIdleMs });
    this.#pools = pools();
    this.#messagePools = pools();
    this.#room = deps.bodyRoom ?? new BodyRoom();
    const { events } = deps;
    this.#tokenCalls = new TokenCalls({ pools: pools(), clock, userAgent: this.#userAgent, events });
    this.#tokens = new OAuthTokens({ clock, fetch: (client) => this.#tokenCalls.fetch(client) });
  }

  async close(): Promise<void> {
    this.#closing = true;
    this.#tokenCalls.stop();
    if (this.#underWay > 0) {
      await new Promise<void>((resolve) => {
        this.#onIdle = resolve;
      });
    }
    await Promise.all([this.#pools.close(), this.#messagePools.close()]);
  }

  /** Never throws, also for an invalid URL or header. */
  send(attempt: Attempt, options: SendOptions): Promise<Outcome> {
    if (this.#closing || options.signal.aborted) {
      return Promise.resolve(
        notSent({ kind: 'network', message: 'firelock stopped before the request was sent' }, true),
      );
    }
    const client = clientOf(attempt.connection);
    return client ? this.#sendWithToken(client, attempt, options) : this.#sendOnce(attempt, options);
  }

  /** Where its connection logs in with an access token, fetches that; null: there is one, or none is needed. Never throws. */
  async logIn(attempt: Attempt, signal: AbortSignal): Promise<Outcome | null> {
    const client = clientOf(attempt.connection);
    if (client === null) return null;
    this.#begin();
    try {
      return await faultOfToken({ tokens: this.#tokens, client, time: this.#timeOf(attempt, signal) });
    } finally {
      this.#end();
    }
  }

  #timeOf({ timeoutSeconds, spentMs = 0 }: Attempt, signal: AbortSignal): AttemptTime {
    return new AttemptTime({ clock: this.#deps.clock, timeoutSeconds, spentMs, signal });
  }

  async #sendWithToken(client: TokenClient, attempt: Attempt, options: SendOptions): Promise<Outcome> {
    const time = this.#timeOf(attempt, options.signal);
    this.#begin();
    try {
      return await withToken({ tokens: this.#tokens, client, time }, (accessToken) =>
        this.#sendOnce(attempt, { ...options, accessToken, leftMs: time.leftMs() }),
      );
    } finally {
      this.#end();
    }
  }

  #sendOnce(attempt: Attempt, options: SendWith): Promise<Outcome> {
    const { spanId, accessToken } = options;
    let request: BegunRequest;
    try {
      const now = this.#deps.clock.now();
      const sender = {
        now,
        userAgent: this.#userAgent,
        spanId,
        ...(accessToken !== undefined && { accessToken }),
      };
      request = beginRequest(remembered(options, attempt.connection), attempt, sender);
    } catch (error) {
      return Promise.resolve(notBuilt(error));
    }
    return this.#exchange(request, attempt, options);
  }

  #exchange(
    request: BegunRequest,
    attempt: Attempt,
    { judging, freshConnection, signal, leftMs }: SendWith,
  ): Promise<Outcome> {
    const { timeoutSeconds, mayStart } = attempt;
    const isMessage = attempt.trigger === 'notify';
    const pools = isMessage ? this.#messagePools : this.#pools;
    const { head } = request;
    const followers = this.#followers(signal);
    return new Promise((resolve) => {
      const exchange = new Exchange({
        request,
        pool: pools.poolOf(head.origin, ownerOf(attempt.connection)),
        ...(!isMessage && { room: this.#room }),
        clock: this.#deps.clock,
        timeoutSeconds,
        ...(leftMs !== undefined && { leftMs }),
        judging,
        freshConnection,
        mayStart,
        onEnd: (ended, outcome) => {
          followers.remove(ended);
          if (ended.blockedBy !== null) this.#reportBlocked(attempt, head, ended.blockedBy);
          resolve(outcome);
          this.#end();
        },
      });
      this.#begin();
      followers.push(exchange);
      exchange.begin();
    });
  }

  #begin(): void {
    this.#underWay++;
  }

  #end(): void {
    if (--this.#underWay === 0) this.#onIdle?.();
  }

  /** For the operator: the outcome does not contain it. */
  #reportBlocked(
    { runId, scheduleId, attempt }: Attempt,
    { origin }: RequestHead,
    { address, because }: AddressBlocked,
  ): void {
    const type = 'targetBlocked';
    this.#deps.events?.emit({ type, runId, scheduleId, attempt, origin, address, because });
  }

  #followers(signal: AbortSignal): Line<Exchange> {
    const known = this.#bySignal.get(signal);
    if (known !== undefined) return known;
    const followers = new Line<Exchange>();
    this.#bySignal.set(signal, followers);
    const stopAll = () => followers.all().forEach((exchange) => exchange.stop());
    signal.addEventListener('abort', stopAll, { once: true });
    return followers;
  }
}

/** TLS settings of a connection have kept connections of their own, and so has its `Host`, which TLS asks for. */
function ownerOf(connection: Connection<string> | null): TlsOwner | null {
  if (connection === null) return null;
  const { uid, tls, headers } = connection;
  const host = Object.entries(headers).find(([name]) => name.toLowerCase() === 'host')?.[1];
  if (host === undefined) return tls === null ? null : { uid, tls };
  return { uid: `${uid} ${host}`, tls: tls ?? NO_TLS };
}

const NO_TLS = { ca: null, cert: null, key: null };
