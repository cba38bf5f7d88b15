import { isIP, type Socket } from 'node:net';
import { type Dispatcher, Client } from 'undici';
import { LineMember } from '../runtime/loop/line.ts';
import { HEAD_LIMIT_BYTES } from '../core/http/answer-head.ts';
import type { Dial, ResettableSocket } from './http-connect.ts';
import { AnswerHeads } from './http-head.ts';
import type { HttpRequest, RequestHead } from './http-request.ts';
import type { Idle } from './idle-connections.ts';

/** The pool that the connection is of. */
interface Lender {
  takeBack(connection: HttpConnection): void;
  /** It is gone. */
  remove(): void;
  dropIfIdle(connection: HttpConnection, reason: string): void;
}

interface ConnectionOptions {
  dial: Dial;
  maxIdleMs: number;
  pool: Lender;
  /** For one request: opened once and closed after the answer, so that nothing can be sent twice. */
  once: boolean;
}

/** For a target that does not say how long it keeps a connection. */
const UNSAID_IDLE_MS = 4_000;

/** One connection, one request at a time. */
export class HttpConnection extends LineMember<Idle> implements Idle {
  readonly heads = new AnswerHeads();
  readonly #once: boolean;
  readonly #client: Client;
  readonly #pool: Lender;
  readonly #dial: Dial;
  #socket: ResettableSocket | null = null;
  /** Open, and not in undici's hands yet. */
  #opened: Socket | null = null;
  #proven = false;

  constructor(origin: string, { dial, maxIdleMs, pool, once }: ConnectionOptions) {
    super();
    this.#once = once;
    this.#pool = pool;
    this.#dial = dial;
    this.#client = new Client(origin, {
      pipelining: 1,
      allowH2: false,
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: Math.min(UNSAID_IDLE_MS, maxIdleMs),
      keepAliveMaxTimeout: maxIdleMs,
      maxHeaderSize: 2 * HEAD_LIMIT_BYTES, // `heads` cuts before.
      connect: (options, callback) => {
        const opened = this.#opened;
        this.#opened = null;
        // Not at once: undici is not ready for it before this call has returned.
        if (opened !== null) queueMicrotask(() => callback(null, opened));
        // undici would open a new connection to send a request whose connection was closed.
        else if (once && this.#socket !== null)
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

  get resetError(): Error | null {
    return this.#socket?.resetError ?? null;
  }

  get tlsError(): Error | null {
    return this.#socket?.tlsError ?? null;
  }

  /** Calls back once a request can be written to it, or with the reason why none can. */
  open({ origin, headers }: RequestHead, onOpen: (error: Error | null) => void): void {
    if (this.#socket !== null) {
      onOpen(null);
      return;
    }
    const { protocol, hostname, host, port } = new URL(origin);
    const servername = serverNameIn(headers);
    this.#socket = this.#dial(
      { protocol, hostname, host, port, ...(servername !== null && { servername }) },
      this.heads.reading((...[error, socket]) => {
        this.#opened = socket;
        onOpen(error);
      }),
    );
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

  /** Nothing was sent over it. */
  putBack(): void {
    if (this.#proven && !this.#once) this.#pool.takeBack(this);
    else this.destroy(new Error('the connection was not used'));
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

/** By which name TLS asks for the server: that of the header `Host`, as undici does. */
function serverNameIn(headers: readonly string[]): string | null {
  const at = headers.findIndex((text, index) => index % 2 === 0 && text === 'host');
  const name = at === -1 ? null : URL.parse(`http://${headers[at + 1]}`)?.hostname;
  return name === null || name === undefined || name.startsWith('[') || isIP(name) !== 0 ? null : name;
}
