import type { Dial, DialWith, TlsSettings } from './http-connect.ts';
import { HttpConnection } from './http-connection.ts';
import { IdleConnections } from './idle-connections.ts';

/** An attempt that waits for a connection. */
export interface Borrower {
  /** Takes a connection over which no other request was sent, and leaves none behind. */
  readonly wantsFresh: boolean;
  start(connection: HttpConnection): void;
}

interface PoolOptions {
  dial: Dial;
  /** The most connections that are open or being opened; further borrowers wait in line. */
  connections: number;
  /** Those of all origins. */
  idle: IdleConnections;
  /** For how long a connection is kept without a request, whatever the target asks for. */
  maxIdleMs: number;
  onEmpty(): void;
}

/**
 * The kept connections of one origin. undici's own pool does not do: here an attempt knows its connection, so that
 * giving it up also ends a connection that is still being opened, and resets exactly the socket that carries its
 * request.
 */
export class OriginPool {
  readonly #origin: string;
  readonly #options: PoolOptions;
  readonly #idle: HttpConnection[] = [];
  readonly #waiting = new Set<Borrower>();
  #open = 0;
  #retired = false;

  constructor(origin: string, options: PoolOptions) {
    this.#origin = origin;
    this.#options = options;
  }

  lend(borrower: Borrower): void {
    const connection = borrower.wantsFresh ? this.#openFresh() : (this.#takeIdle() ?? this.#openKept());
    if (connection === undefined) this.#waiting.add(borrower);
    else borrower.start(connection);
  }

  /** The borrower gives up the connection that it waits for. */
  withdraw(borrower: Borrower): void {
    this.#waiting.delete(borrower);
  }

  /** A connection whose answer was read completely goes to the next in line, or makes room for it. */
  takeBack(connection: HttpConnection): void {
    const [next] = this.#waiting;
    if (next === undefined && this.#retired) {
      connection.destroy(new Error(RETIRED));
    } else if (next === undefined) {
      this.#idle.push(connection);
      this.#options.idle.add(connection);
    } else if (next.wantsFresh) {
      connection.destroy(new Error('the kept connection makes room'));
    } else {
      this.#waiting.delete(next);
      next.start(connection);
    }
  }

  /** A connection is gone. */
  remove(): void {
    this.#open--;
    const [next] = this.#waiting;
    if (next !== undefined) {
      this.#waiting.delete(next);
      this.lend(next);
    } else if (this.#open === 0) {
      this.#options.onEmpty();
    }
  }

  /**
   * A connection in use is left alone: its borrower gets the error, or undici opens it again for a request that is not
   * yet written.
   */
  dropIfIdle(connection: HttpConnection, reason: string): void {
    const index = this.#idle.indexOf(connection);
    if (index === -1) return;
    this.#idle.splice(index, 1);
    this.#options.idle.remove(connection);
    connection.destroy(new Error(reason));
  }

  /** Another pool takes its place: from now on a connection is closed once it is idle. */
  retire(): void {
    this.#retired = true;
    for (const connection of [...this.#idle]) this.dropIfIdle(connection, RETIRED);
  }

  async close(): Promise<void> {
    await Promise.all(this.#idle.splice(0).map((connection) => connection.close()));
  }

  /** The one that was used last, so that those that are not needed grow old. */
  #takeIdle(): HttpConnection | undefined {
    const connection = this.#idle.pop();
    if (connection !== undefined) this.#options.idle.remove(connection);
    return connection;
  }

  #openKept(): HttpConnection | undefined {
    return this.#open < this.#options.connections ? this.#openAnother(false) : undefined;
  }

  /** If there is no room, the connection that has been idle longest is closed. */
  #openFresh(): HttpConnection | undefined {
    if (this.#open < this.#options.connections) return this.#openAnother(true);
    const [oldest] = this.#idle;
    if (oldest === undefined) return undefined;
    // Counted before the other connection goes, so that the pool is never empty in between.
    const connection = this.#openAnother(true);
    this.dropIfIdle(oldest, 'the kept connection makes room');
    return connection;
  }

  #openAnother(once: boolean): HttpConnection {
    this.#open++;
    return new HttpConnection(this.#origin, {
      dial: this.#options.dial,
      maxIdleMs: this.#options.maxIdleMs,
      pool: this,
      once,
    });
  }
}

const RETIRED = 'the credentials of the kept connection are no longer used';

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
