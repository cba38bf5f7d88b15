import { type Dispatcher, Client } from 'undici';
import type { Dial, ResettableSocket } from './http-connect.ts';
import { HEAD_LIMIT_BYTES } from '../core/http/answer-head.ts';
import { AnswerHeads } from './http-head.ts';
import type { HttpRequest } from './http-request.ts';

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

interface ConnectionOptions {
  dial: Dial;
  maxIdleMs: number;
  pool: OriginPool;
  /** For one request: opened once and closed after the answer, so that nothing can be sent twice. */
  once: boolean;
}

/** For a target that does not say how long it keeps a connection. */
const UNSAID_IDLE_MS = 4_000;

/** One connection, one request at a time. */
export class HttpConnection {
  readonly heads = new AnswerHeads();
  readonly #once: boolean;
  readonly #client: Client;
  readonly #pool: OriginPool;
  #socket: ResettableSocket | null = null;
  #proven = false;

  constructor(origin: string, { dial, maxIdleMs, pool, once }: ConnectionOptions) {
    this.#once = once;
    this.#pool = pool;
    this.#client = new Client(origin, {
      pipelining: 1,
      allowH2: false,
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: Math.min(UNSAID_IDLE_MS, maxIdleMs),
      keepAliveMaxTimeout: maxIdleMs,
      maxHeaderSize: 2 * HEAD_LIMIT_BYTES, // `heads` cuts before.
      connect: (options, callback) => {
        // undici would open a new connection to send a request whose connection was closed.
        if (once && this.#socket !== null)
          callback(new Error('the connection was closed before the request was sent'), null);
        else this.#socket = dial(options, this.heads.reading(callback));
      },
    });
    this.#client.on('disconnect', () => pool.dropIfIdle(this, 'the kept connection was closed'));
  }

  /** True once an answer came over it: if it then fails before the next request is written, it had only grown stale. */
  get proven(): boolean {
    return this.#proven;
  }

  get tlsError(): Error | null {
    return this.#socket?.tlsError ?? null;
  }

  send(request: HttpRequest, handler: Dispatcher.DispatchHandler): void {
    const { path, method, headers, body } = request;
    // `reset` tells the server not to keep the connection either; false would keep it after HEAD, which undici does not.
    this.#client.dispatch({ path, method, headers, body, ...(this.#once && { reset: true }) }, handler);
  }

  /** The first byte of a request is about to be written: from here on, the connection ends only by reset. */
  requestBegins(): void {
    this.heads.requestBegins();
    if (this.#socket !== null) this.#socket.resetOnDestroy = true;
  }

  /** The answer was read completely. */
  giveBack(): void {
    this.#proven = true;
    if (this.#socket !== null) this.#socket.resetOnDestroy = false;
    if (this.#once) this.destroy(new Error('the connection was for one request'));
    else this.#pool.takeBack(this);
  }

  /** Too many others are idle. */
  dropIfIdle(): void {
    this.#pool.dropIfIdle(this, 'too many kept connections are idle');
  }

  destroy(error: Error): void {
    this.#socket?.destroy(error);
    void this.#client.destroy(error);
    this.#pool.remove();
  }

  async close(): Promise<void> {
    await this.#client.close();
  }
}

interface Idle {
  /** Called when it has been idle longest of too many. */
  dropIfIdle(): void;
}

/** The connections of all origins that carry no request: a number of targets does not decide how many stay open. */
export class IdleConnections {
  readonly #most: number;
  /** The one that has been idle longest comes first. */
  readonly #idle = new Set<Idle>();

  constructor(most: number) {
    this.#most = most;
  }

  add(connection: Idle): void {
    this.#idle.add(connection);
    const [longest] = this.#idle;
    if (this.#idle.size > this.#most) longest?.dropIfIdle();
  }

  /** It is used again, or gone. */
  remove(connection: Idle): void {
    this.#idle.delete(connection);
  }
}
