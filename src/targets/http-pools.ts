import type { DialWith, TlsSettings } from './http-connect.ts';
import { IdleConnections, OriginPool } from './http-pool.ts';

interface PoolsDeps {
  dialWith: DialWith;
  connectionsPerOrigin: number;
  /** Kept connections of all origins that may be idle. */
  mostIdle: number;
  maxIdleMs: number;
}

/** A connection whose TLS settings decide to whom, and as whom, kept connections were opened. */
export interface TlsOwner {
  uid: string;
  tls: TlsSettings;
}

interface KnownPool {
  pool: OriginPool;
  tls: TlsSettings | null;
}

/** The kept connections of all origins: no two owners share one, and none outlives the texts that it was opened with. */
export class HttpPools {
  readonly #deps: PoolsDeps;
  readonly #idle: IdleConnections;
  readonly #pools = new Map<string, KnownPool>();

  constructor(deps: PoolsDeps) {
    this.#deps = deps;
    this.#idle = new IdleConnections(deps.mostIdle);
  }

  /** `owner`: null shares the connections of this origin with all that have none. */
  poolOf(origin: string, owner: TlsOwner | null): OriginPool {
    const place = owner === null ? origin : `${origin} ${owner.uid}`;
    const tls = owner?.tls ?? null;
    const known = this.#pools.get(place);
    if (known !== undefined && isSame(known.tls, tls)) return known.pool;
    // Out of its place first: a pool that becomes empty leaves only its own.
    const pool = this.#create(origin, place, tls);
    this.#pools.set(place, { pool, tls });
    known?.pool.retire();
    return pool;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#pools.values()].map(({ pool }) => pool.close()));
  }

  #create(origin: string, place: string, tls: TlsSettings | null): OriginPool {
    const pool: OriginPool = new OriginPool(origin, {
      dial: this.#deps.dialWith(tls),
      connections: this.#deps.connectionsPerOrigin,
      idle: this.#idle,
      maxIdleMs: this.#deps.maxIdleMs,
      onEmpty: () => {
        if (this.#pools.get(place)?.pool === pool) this.#pools.delete(place);
      },
    });
    return pool;
  }
}

function isSame(one: TlsSettings | null, other: TlsSettings | null): boolean {
  const texts = textsOf(one);
  const others = textsOf(other);
  return texts.length === others.length && texts.every((text, index) => text === others[index]);
}

function textsOf(tls: TlsSettings | null): readonly (string | null)[] {
  if (tls === null) return [];
  return 'alsoTrusted' in tls ? [tls.alsoTrusted] : [tls.ca, tls.cert, tls.key];
}
