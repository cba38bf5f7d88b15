import type { Dispatcher } from 'undici';
import { type AttemptError, type Outcome, blocked, notSent } from '../core/runs/attempts/outcome.ts';
import type { Clock } from '../runtime/clock.ts';
import { AddressBlocked } from './address-guard.ts';
import { ANSWER_LIMIT_BYTES, type AnswerHeaders, type Judging, outcomeOf } from './http-answer.ts';
import { plainMessage } from './http-connect.ts';
import { type Content, contentOf } from './http-content.ts';
import { type AnswerHeads, isUnreadable } from './http-head.ts';
import type { Borrower, HttpConnection, OriginPool } from './http-pool.ts';
import type { HttpRequest } from './http-request.ts';

export type WholeAnswer = Parameters<typeof outcomeOf>[0];

interface ExchangeOptions {
  request: HttpRequest;
  pool: OriginPool;
  clock: Clock;
  timeoutSeconds: number;
  /** What is left of it if it began before; absent: all. */
  leftMs?: number;
  /** Over a connection that carries no other request. */
  freshConnection: boolean;
  judging: Judging;
  /** Called just before the first byte; false: nothing is sent. */
  mayStart(): boolean;
  /** Gets a whole answer before it is judged, or as much of it as is read. */
  onAnswer?(answer: WholeAnswer): void;
  onEnd(exchange: Exchange, outcome: Outcome): void;
}

/**
 * One attempt on the wire: waits for a connection, sends, reads, and ends exactly once, by its deadline at the latest.
 * Nothing has been sent before `#written`, which undici's `onRequestStart` sets just before the first byte. After that,
 * everything but a whole answer is an unknown outcome.
 */
export class Exchange implements Borrower, Dispatcher.DispatchHandler {
  readonly #options: ExchangeOptions;
  readonly #deadline: NodeJS.Timeout;
  #connection: HttpConnection | null = null;
  #written = false;
  /** It was sent over a kept connection that ended before any byte of an answer. */
  #repeats = false;
  #ended = false;
  #statusCode = 0;
  #headers: AnswerHeaders = {};
  #blockedBy: AddressBlocked | null = null;
  #chunks: Buffer[] = [];
  #size = 0;

  constructor(options: ExchangeOptions) {
    this.#options = options;
    const { timeoutSeconds, leftMs = timeoutSeconds * 1000 } = options;
    this.#deadline = setTimeout(onDeadline, Math.min(leftMs, MAX_TIMER_MS), this);
  }

  /** Why no connection was opened; null: another reason, or none. */
  get blockedBy(): AddressBlocked | null {
    return this.#blockedBy;
  }

  get wantsFresh(): boolean {
    return this.#options.freshConnection || this.#repeats;
  }

  begin(): void {
    this.#options.pool.lend(this);
  }

  start(connection: HttpConnection): void {
    this.#connection = connection;
    connection.send(this.#options.request, this);
  }

  expire(): void {
    const limit = `within ${this.#options.timeoutSeconds} s`;
    const message = this.#written ? `no complete answer ${limit}` : `no connection ${limit}`;
    this.#abandon({ kind: 'timeout', message }, false);
  }

  /** The daemon is stopping. */
  stop(): void {
    const message = this.#written
      ? 'firelock stopped before the target answered'
      : 'firelock stopped before the request was sent';
    this.#abandon({ kind: 'network', message }, true);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#written) {
      this.#refuse(controller, LOST.message);
    } else if (!this.#options.mayStart()) {
      this.#refuse(controller, 'not sent: this instance might have lost the run to another one');
    } else {
      this.#written = true;
      this.#connection?.requestBegins();
    }
  }

  onResponseStart(_: Dispatcher.DispatchController, statusCode: number, headers: AnswerHeaders): void {
    // Interim answers (103) come before the final one; their headers are ignored.
    this.#statusCode = this.#connection?.heads.statusCode ?? statusCode;
    this.#headers = headers;
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#ended) return;
    this.#chunks.push(chunk);
    this.#size += chunk.length;
    if (this.#size <= ANSWER_LIMIT_BYTES) return;
    this.#endWithAnswer();
    this.#dropConnection('the answer is longer than is read');
  }

  onResponseEnd(): void {
    if (this.#ended) return;
    this.#endWithAnswer();
    const connection = this.#connection;
    this.#connection = null;
    connection?.giveBack();
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    if (this.#ended) return;
    const connection = this.#connection;
    this.#connection = null;
    if (error instanceof AddressBlocked) {
      connection?.destroy(error);
      this.#blockedBy = error;
      this.#end(this.#written ? unknown(LOST, false) : blocked());
      return;
    }
    if (!this.#written && connection?.proven === true) {
      // The connection had grown stale, and nothing was sent: ask for another one first, so that the pool stays in use.
      this.begin();
      connection.destroy(error);
      return;
    }
    if (this.#written && connection?.proven === true && !connection.heads.began && !this.wantsFresh) {
      // It may have arrived, and is sent once more at once, over a connection that cannot have grown stale.
      this.#repeats = true;
      this.#written = false;
      this.begin();
      connection.destroy(error);
      return;
    }
    connection?.destroy(error);
    if (this.#written && connection !== null && isUnreadable(error)) {
      this.#endUnread(connection.heads);
    } else if (this.#written || this.#repeats) {
      const cut =
        this.#statusCode >= 200 ? 'the answer was cut short' : 'the request was sent, and no answer came';
      const reason = describe(connection?.tlsError ?? error);
      this.#end(unknown({ kind: 'network', message: `${cut}: ${reason}` }, false));
    } else {
      this.#end(notSent({ kind: 'network', message: describe(error) }));
    }
  }

  /** Ends before undici writes: undici checks whether the request was aborted when `onRequestStart` returns. */
  #refuse(controller: Dispatcher.DispatchController, message: string): void {
    const connection = this.#connection;
    this.#connection = null;
    const error: AttemptError = { kind: 'network', message };
    this.#end(this.#written ? unknown(error, false) : notSent(error, true));
    controller.abort(new Error(message));
    connection?.destroy(new Error(message));
  }

  #abandon(error: AttemptError, senderStopped: boolean): void {
    if (this.#ended) return;
    this.#end(this.#written ? unknown(error, senderStopped) : notSent(error, senderStopped));
    if (this.#connection === null) this.#options.pool.withdraw(this);
    else this.#dropConnection(error.message);
  }

  #dropConnection(reason: string): void {
    const connection = this.#connection;
    this.#connection = null;
    connection?.destroy(new Error(reason));
  }

  #endWithAnswer(): void {
    const chunks = this.#chunks;
    const read = chunks.length > 1 ? Buffer.concat(chunks) : (chunks[0] ?? NO_BYTES);
    const bytes = read.length > ANSWER_LIMIT_BYTES ? read.subarray(0, ANSWER_LIMIT_BYTES) : read;
    const content = contentOf(this.#headers, bytes, ANSWER_LIMIT_BYTES);
    if (content instanceof Promise) {
      this.#isOver();
      void content.then((unpacked) => this.#judge(unpacked));
    } else this.#judge(content);
  }

  /** A parser gave up. The status line says what became of the run, if it was read. */
  #endUnread({ statusCode, garbage }: AnswerHeads): void {
    if (statusCode === null) {
      const message = `what the target answered is not HTTP: ${JSON.stringify(garbage ?? '')}`;
      this.#end({ kind: 'rejected', statusCode: null, body: null, error: { kind: 'network', message } });
    } else {
      this.#statusCode = statusCode;
      this.#judge({ body: Buffer.concat(this.#chunks), isDecoded: false });
    }
  }

  #judge(content: Content): void {
    const { clock, judging } = this.#options;
    const answer = { statusCode: this.#statusCode, headers: this.#headers, ...content };
    this.#options.onAnswer?.(answer);
    this.#end(outcomeOf(answer, clock.now(), judging));
  }

  #end(outcome: Outcome): void {
    this.#isOver();
    this.#options.onEnd(this, outcome);
  }

  #isOver(): void {
    this.#ended = true;
    clearTimeout(this.#deadline);
  }
}

const LOST: AttemptError = {
  kind: 'network',
  message: 'the connection was lost after the request was sent',
};

const NO_BYTES = Buffer.alloc(0);

/** A longer timer would fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

function unknown(error: AttemptError, senderStopped: boolean): Outcome {
  return { kind: 'unknown', error, senderStopped };
}

/** By setImmediate, so that an answer which arrived while the loop was busy is read first. */
function onDeadline(exchange: Exchange): void {
  setImmediate(expire, exchange);
}

function expire(exchange: Exchange): void {
  exchange.expire();
}

function describe(error: NodeJS.ErrnoException): string {
  const message = plainMessage(error);
  return error.code === undefined || message.includes(error.code) ? message : `${message} (${error.code})`;
}
