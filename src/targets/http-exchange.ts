import type { Dispatcher } from 'undici';
import { type AttemptError, type Outcome, blocked, notSent } from '../core/runs/attempts/outcome.ts';
import type { Clock } from '../runtime/clock.ts';
import { LineMember } from '../runtime/loop/line.ts';
import { AddressBlocked } from './address-guard.ts';
import { type BodyRoom, BodyPlace, UNCOUNTED_BYTES } from './body-room.ts';
import { LOST, cutShort, notBuilt, notHttp, notSentBecause, startDeadline, unknown } from './exchange-end.ts';
import { ANSWER_LIMIT_BYTES, type AnswerHeaders, type Judging, outcomeOf } from './http-answer.ts';
import { type Content, contentOf, joined } from './http-content.ts';
import { type AnswerHeads, isUnreadable } from './http-head.ts';
import type { HttpConnection } from './http-connection.ts';
import type { Borrower, OriginPool } from './http-pool.ts';
import type { BegunRequest, HttpRequest } from './http-request.ts';

export type WholeAnswer = Parameters<typeof outcomeOf>[0];

interface ExchangeOptions {
  request: BegunRequest;
  pool: OriginPool;
  /** Where its body finds room; absent: it is small. */
  room?: BodyRoom;
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
export class Exchange extends LineMember<Exchange> implements Borrower, Dispatcher.DispatchHandler {
  readonly #options: ExchangeOptions;
  readonly #deadline: NodeJS.Timeout;
  #connection: HttpConnection | null = null;
  /** Of a large body. */
  #place: BodyPlace | null = null;
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
    super();
    this.#options = options;
    const { timeoutSeconds, leftMs = timeoutSeconds * 1000 } = options;
    this.#deadline = startDeadline(this, leftMs);
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
    connection.open(this.#options.request.head, (error) => {
      if (this.#connection !== connection) return;
      if (error === null) this.#send(connection);
      else this.onResponseError(null, error);
    });
  }

  expire(): void {
    const isWaiting = this.#place?.has === false;
    const missing = isWaiting ? 'room here for its body' : 'connection';
    const what = this.#written ? 'complete answer' : missing;
    this.#abandon({ kind: 'timeout', message: `no ${what} within ${this.#options.timeoutSeconds} s` }, isWaiting);
  }

  /** The daemon is stopping. */
  stop(): void {
    const what = this.#written ? 'the target answered' : 'the request was sent';
    this.#abandon({ kind: 'network', message: `firelock stopped before ${what}` }, true);
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
    const cut = this.#connection?.resetError ?? null;
    if (cut !== null) {
      this.onResponseError(null, cut);
      return;
    }
    this.#endWithAnswer();
    this.#letGo()?.giveBack();
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    if (this.#ended) return;
    const connection = this.#letGo();
    if (error instanceof AddressBlocked) {
      connection?.destroy(error);
      this.#blockedBy = error;
      this.#end(this.#written ? unknown(LOST, false) : blocked());
      return;
    }
    if (connection?.proven === true && (!this.#written || (!connection.heads.began && !this.wantsFresh))) {
      // It had grown stale. What may have arrived is sent once more at once, over a connection that cannot have grown stale.
      this.#repeats ||= this.#written;
      this.#written = false;
      // Before the old one goes, so that the pool stays in use.
      this.begin();
      connection.destroy(error);
      return;
    }
    connection?.destroy(error);
    if (this.#written && connection !== null && isUnreadable(error)) {
      this.#endUnread(connection.heads);
    } else if (this.#written || this.#repeats) {
      this.#end(cutShort(this.#statusCode, connection?.tlsError ?? error));
    } else {
      this.#end(notSentBecause(error));
    }
  }

  /** The body is built only now, and not kept here. */
  #send(connection: HttpConnection): void {
    let request: HttpRequest;
    try {
      request = this.#options.request.finish();
    } catch (error) {
      this.#letGo()?.putBack();
      this.#end(notBuilt(error));
      return;
    }
    if (this.#hasRoomFor(request)) connection.send(request, this);
    // While the attempt waits in line, it could grow stale.
    else this.#letGo()?.putBack();
  }

  #hasRoomFor({ origin, body }: HttpRequest): boolean {
    const { room } = this.#options;
    if (this.#place !== null) return this.#place.has;
    const bytes = body === null ? 0 : Buffer.byteLength(body);
    if (bytes <= UNCOUNTED_BYTES || room === undefined) return true;
    this.#place = new BodyPlace({ room, origin, bytes, onRoom: () => this.begin() });
    return this.#place.has;
  }

  /** Ends before undici writes: undici checks whether the request was aborted when `onRequestStart` returns. */
  #refuse(controller: Dispatcher.DispatchController, message: string): void {
    const connection = this.#letGo();
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

  #letGo(): HttpConnection | null {
    const connection = this.#connection;
    this.#connection = null;
    return connection;
  }

  #dropConnection(reason: string): void {
    this.#letGo()?.destroy(new Error(reason));
  }

  #endWithAnswer(): void {
    const content = contentOf(this.#headers, joined(this.#chunks, ANSWER_LIMIT_BYTES), ANSWER_LIMIT_BYTES);
    if (content instanceof Promise) {
      this.#isOver();
      void content.then((unpacked) => this.#judge(unpacked));
    } else this.#judge(content);
  }

  /** A parser gave up. The status line says what became of the run, if it was read. */
  #endUnread({ statusCode, garbage }: AnswerHeads): void {
    if (statusCode === null) {
      this.#end(notHttp(garbage ?? ''));
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
    this.#place?.leave();
    this.#place = null;
  }
}
