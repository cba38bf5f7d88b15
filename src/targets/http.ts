import { type Outcome, notSent } from '../core/outcome.ts';
import type { HttpLookup, HttpTarget } from '../core/schedule.ts';
import type { Clock } from '../runtime/clock.ts';
import { createDial } from './http-connect.ts';
import { Exchange } from './http-exchange.ts';
import { lookupAnswerOf, unclear } from './http-lookup.ts';
import { OriginPool } from './http-pool.ts';
import {
  type HttpRequest,
  type PreparedTarget,
  buildRequest,
  parseAddress,
  prepareLookup,
  prepareTarget,
} from './http-request.ts';
import type { Attempt, LookupAnswer, TargetKind } from './target.ts';

export interface HttpTargetDeps {
  clock: Clock;
  /** Named in the user agent. */
  version: string;
  connectionsPerOrigin: number;
}

/** Hands runs off as HTTP/1.1 requests over kept connections, each with one deadline from name resolution to the answer's last byte. */
export function createHttpTarget(deps: HttpTargetDeps): TargetKind {
  return new HttpTargetKind(deps);
}

interface SendOptions {
  freshConnection: boolean;
  signal: AbortSignal;
}

class HttpTargetKind implements TargetKind {
  readonly type = 'http';
  readonly #deps: HttpTargetDeps;
  readonly #userAgent: string;
  readonly #dial = createDial();
  readonly #pools = new Map<string, OriginPool>();
  readonly #prepared = new WeakMap<HttpTarget | HttpLookup, PreparedTarget>();
  /** One listener per signal rather than per attempt: thousands of attempts share the signal of the daemon's stop. */
  readonly #bySignal = new WeakMap<AbortSignal, Set<Exchange>>();
  #underWay = 0;
  #closing = false;
  #onIdle: (() => void) | null = null;

  constructor(deps: HttpTargetDeps) {
    this.#deps = deps;
    this.#userAgent = `firelock/${deps.version}`;
  }

  /** The URL's origin. A URL that is none, which only a foreign hand can store, is a lane of its own. */
  laneOf(target: HttpTarget): string {
    try {
      return (this.#prepare(target).address ?? parseAddress(target.url)).origin;
    } catch {
      return target.url;
    }
  }

  deliver(target: HttpTarget, attempt: Attempt, signal: AbortSignal): Promise<Outcome> {
    const freshConnection = attempt.delivery === 'atMostOnce';
    return this.#send(() => this.#prepare(target), attempt, { freshConnection, signal });
  }

  hasLookup(target: HttpTarget): boolean {
    return target.lookup !== null;
  }

  async lookup({ lookup }: HttpTarget, attempt: Attempt, signal: AbortSignal): Promise<LookupAnswer> {
    if (lookup === null) return unclear({ kind: 'network', message: 'the target has none' });
    const prepared = () => this.#prepareLookup(lookup);
    return lookupAnswerOf(await this.#send(prepared, attempt, { freshConnection: false, signal }));
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

  /** Never throws, also where the URL or a header is none. */
  #send(prepared: () => PreparedTarget, attempt: Attempt, options: SendOptions): Promise<Outcome> {
    if (this.#closing || options.signal.aborted) {
      return Promise.resolve(notSent({ kind: 'network', message: 'stopped before anything was sent' }, true));
    }
    let request: HttpRequest;
    try {
      const sender = { now: this.#deps.clock.now(), userAgent: this.#userAgent };
      request = buildRequest(prepared(), attempt, sender);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      return Promise.resolve(notSent({ kind: 'network', message: `the request cannot be built: ${reason}` }));
    }
    return this.#exchange(request, attempt, options);
  }

  #exchange(
    request: HttpRequest,
    { timeoutSeconds, mayStart }: Attempt,
    { freshConnection, signal }: SendOptions,
  ): Promise<Outcome> {
    const followers = this.#followers(signal);
    return new Promise((resolve) => {
      const exchange = new Exchange({
        request,
        pool: this.#poolOf(request.origin),
        clock: this.#deps.clock,
        timeoutSeconds,
        freshConnection,
        mayStart,
        onEnd: (ended, outcome) => {
          followers.delete(ended);
          resolve(outcome);
          if (--this.#underWay === 0) this.#onIdle?.();
        },
      });
      this.#underWay++;
      followers.add(exchange);
      exchange.begin();
    });
  }

  #poolOf(origin: string): OriginPool {
    let pool = this.#pools.get(origin);
    if (pool === undefined) {
      pool = new OriginPool(origin, {
        dial: this.#dial,
        connections: this.#deps.connectionsPerOrigin,
        onEmpty: () => this.#pools.delete(origin),
      });
      this.#pools.set(origin, pool);
    }
    return pool;
  }

  #prepare(target: HttpTarget): PreparedTarget {
    return this.#remember(target, () => prepareTarget(target));
  }

  #prepareLookup(lookup: HttpLookup): PreparedTarget {
    return this.#remember(lookup, () => prepareLookup(lookup));
  }

  #remember(key: HttpTarget | HttpLookup, prepare: () => PreparedTarget): PreparedTarget {
    const known = this.#prepared.get(key);
    if (known !== undefined) return known;
    const prepared = prepare();
    this.#prepared.set(key, prepared);
    return prepared;
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
