import { type Outcome, answerError, notSent } from '../core/runs/attempts/outcome.ts';
import type { HttpCall, HttpTarget } from '../core/schedules/schedule.ts';
import type { EgressProxy } from '../config/egress-proxy.ts';
import type { Clock } from '../runtime/clock.ts';
import type { EventBus } from '../runtime/event-bus.ts';
import type { Resolve } from '../runtime/names/resolve.ts';
import { createResolver } from '../runtime/names/resolver.ts';
import { newSpanId } from '../runtime/span-id.ts';
import { type AddressBlocked, type AddressGuard, createAddressGuard } from './address-guard.ts';
import { type Dial, createDial } from './http-connect.ts';
import { Exchange } from './http-exchange.ts';
import { type Judging, lookupAnswerOf, unclear } from './http-answer.ts';
import { IdleConnections, OriginPool } from './http-pool.ts';
import {
  type HttpRequest,
  type PreparedTarget,
  buildRequest,
  parseAddress,
  prepareCall,
  prepareTarget,
} from './http-request.ts';
import type { Attempt, CancelAnswer, LookupAnswer, TargetKind } from './target.ts';

interface HttpTargetDeps {
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
}

/** Hands runs off as HTTP/1.1 requests over kept connections, each with one deadline from name resolution to the answer's last byte. */
export function createHttpTarget(deps: HttpTargetDeps): TargetKind<HttpTarget<string>> {
  return new HttpTargetKind(deps);
}

type Call = HttpCall<string>;

interface SendOptions {
  prepare: () => PreparedTarget;
  spanId: string;
  judging: Judging;
  freshConnection: boolean;
  signal: AbortSignal;
}

/** The rules of a target are about the handoff itself. */
const LOOKUP: Judging = { rules: null, delivery: 'atLeastOnce', asked: true };
const CANCEL: Judging = { ...LOOKUP, asked: false };

const CONCURRENCY = 256;
/** Lookups and cancel calls beside the attempts: no attempt is refused the look-up of its name. */
const OTHER_CALLS = 1_000;
const MAX_IDLE_MS = 30_000;

class HttpTargetKind implements TargetKind<HttpTarget<string>> {
  readonly type = 'http';
  readonly #deps: HttpTargetDeps;
  readonly #userAgent: string;
  readonly #dial: Dial;
  readonly #pools = new Map<string, OriginPool>();
  readonly #idle: IdleConnections;
  /** One listener per signal rather than per attempt: thousands of attempts share the signal that the daemon stops. */
  readonly #bySignal = new WeakMap<AbortSignal, Set<Exchange>>();
  #underWay = 0;
  #closing = false;
  #onIdle: (() => void) | null = null;

  constructor(deps: HttpTargetDeps) {
    this.#deps = deps;
    this.#userAgent = `firelock/${deps.version}`;
    const { guard = createAddressGuard(), proxy = null, concurrency = CONCURRENCY } = deps;
    const { resolve = createResolver({ mostAtOnce: concurrency + OTHER_CALLS }) } = deps;
    this.#idle = new IdleConnections(concurrency);
    this.#dial = createDial({ guard, resolve, proxy });
  }

  /** The URL's origin. An invalid URL, which only another program can store, gets a lane of its own. */
  laneOf({ url }: HttpTarget): string {
    try {
      return parseAddress(url).origin;
    } catch {
      return url;
    }
  }

  deliver(target: HttpTarget<string>, attempt: Attempt, signal: AbortSignal): Promise<Outcome> {
    const freshConnection = attempt.delivery === 'atMostOnce';
    const prepare = () => prepareTarget(target);
    const { spanId = newSpanId() } = attempt;
    const judging = { rules: target.outcome, delivery: attempt.delivery, asked: false };
    return this.#send(target, attempt, { prepare, spanId, judging, freshConnection, signal });
  }

  hasLookup({ lookup }: HttpTarget): boolean {
    return lookup !== null;
  }

  async lookup(target: HttpTarget<string>, attempt: Attempt, signal: AbortSignal): Promise<LookupAnswer> {
    const { lookup } = target;
    if (lookup === null) return unclear({ kind: 'network', message: 'none is configured' });
    const prepare = () => prepareCall(lookup, target);
    return lookupAnswerOf(await this.#call(lookup, attempt, { prepare, judging: LOOKUP, signal }));
  }

  hasCancel({ cancel }: HttpTarget): boolean {
    return cancel !== null;
  }

  async cancel(target: HttpTarget<string>, attempt: Attempt, signal: AbortSignal): Promise<CancelAnswer> {
    const { cancel } = target;
    if (cancel === null) return { kind: 'network', message: 'the target has no cancel call' };
    const prepare = () => prepareCall(cancel, target);
    const outcome = await this.#call(cancel, attempt, { prepare, judging: CANCEL, signal });
    if (outcome.kind === 'accepted') return null;
    return outcome.kind === 'rejected' ? answerError(outcome.statusCode) : outcome.error;
  }

  async close(): Promise<void> {
    this.#closing = true;
    if (this.#underWay > 0) {
      await new Promise<void>((resolve) => {
        this.#onIdle = resolve;
      });
    }
    await Promise.all([...this.#pools.values()].map((pool) => pool.close()));
  }

  #call(
    call: Call,
    attempt: Attempt,
    options: Omit<SendOptions, 'freshConnection' | 'spanId'>,
  ): Promise<Outcome> {
    return this.#send(call, attempt, { ...options, spanId: newSpanId(), freshConnection: false });
  }

  /** Never throws, also for an invalid URL or header. */
  #send(call: Call, attempt: Attempt, options: SendOptions): Promise<Outcome> {
    if (this.#closing || options.signal.aborted) {
      return Promise.resolve(
        notSent({ kind: 'network', message: 'firelock stopped before the request was sent' }, true),
      );
    }
    let request: HttpRequest;
    try {
      const sender = { now: this.#deps.clock.now(), userAgent: this.#userAgent, spanId: options.spanId };
      request = buildRequest(remembered(call, options.prepare), attempt, sender);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      return Promise.resolve(notSent({ kind: 'network', message: `the request cannot be built: ${reason}` }));
    }
    return this.#exchange(request, attempt, options);
  }

  #exchange(
    request: HttpRequest,
    attempt: Attempt,
    { judging, freshConnection, signal }: SendOptions,
  ): Promise<Outcome> {
    const { timeoutSeconds, mayStart } = attempt;
    const followers = this.#followers(signal);
    return new Promise((resolve) => {
      const exchange = new Exchange({
        request,
        pool: this.#poolOf(request.origin),
        clock: this.#deps.clock,
        timeoutSeconds,
        judging,
        freshConnection,
        mayStart,
        onEnd: (ended, outcome) => {
          followers.delete(ended);
          if (ended.blockedBy !== null) this.#reportBlocked(attempt, request, ended.blockedBy);
          resolve(outcome);
          if (--this.#underWay === 0) this.#onIdle?.();
        },
      });
      this.#underWay++;
      followers.add(exchange);
      exchange.begin();
    });
  }

  /** For the operator: the outcome does not contain it. */
  #reportBlocked(
    { runId, scheduleId, attempt }: Attempt,
    { origin }: HttpRequest,
    { address, because }: AddressBlocked,
  ): void {
    const type = 'targetBlocked';
    this.#deps.events?.emit({ type, runId, scheduleId, attempt, origin, address, because });
  }

  #poolOf(origin: string): OriginPool {
    let pool = this.#pools.get(origin);
    if (pool === undefined) {
      pool = new OriginPool(origin, {
        dial: this.#dial,
        connections: this.#deps.connectionsPerOrigin,
        idle: this.#idle,
        maxIdleMs: this.#deps.maxIdleMs ?? MAX_IDLE_MS,
        onEmpty: () => this.#pools.delete(origin),
      });
      this.#pools.set(origin, pool);
    }
    return pool;
  }

  #followers(signal: AbortSignal): Set<Exchange> {
    const known = this.#bySignal.get(signal);
    if (known !== undefined) return known;
    const followers = new Set<Exchange>();
    this.#bySignal.set(signal, followers);
    const stopAll = () => followers.forEach((exchange) => exchange.stop());
    signal.addEventListener('abort', stopAll, { once: true });
    return followers;
  }
}

function remembered(call: Call, prepare: () => PreparedTarget): PreparedTarget {
  const known = (call as Remembering)[PREPARED];
  if (known !== undefined) return known;
  const prepared = prepare();
  // Not enumerable: a changed copy of the call must not take it along. Not a WeakMap: with a key for each of 10,000
  // targets, that is a good part of the cost of garbage collection.
  Object.defineProperty(call, PREPARED, { value: prepared });
  return prepared;
}

const PREPARED = Symbol('prepared');

interface Remembering {
  [PREPARED]?: PreparedTarget;
}
