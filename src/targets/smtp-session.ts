import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import SmtpConnection from 'nodemailer/lib/smtp-connection';
import type { SmtpServer } from '../config/smtp-url.ts';
import { type AttemptError, type Outcome, blocked, keptText, notSent } from '../core/runs/attempts/outcome.ts';
import { AddressBlocked } from './address-guard.ts';
import type { Dial } from './http-connect.ts';
import type { Attempt } from './target.ts';
import { notSentBecause } from './exchange-end.ts';

interface SessionOptions {
  server: SmtpServer;
  mail: ComposedMail;
  attempt: Pick<Attempt, 'timeoutSeconds' | 'mayStart'>;
  dial: Dial;
}

/**
 * One mail over one connection. Until the server has asked for its text, nothing was handed over; from then on, everything but an
 * answer is an unknown outcome.
 */
export class SmtpSession {
  readonly #options: SessionOptions;
  #socket: Socket | null = null;
  #smtp: SmtpConnection | null = null;
  #handsOver = false;
  #blockedBy: AddressBlocked | null = null;

  constructor(options: SessionOptions) {
    this.#options = options;
  }

  /** Why no connection was opened; null: another reason, or none. */
  get blockedBy(): AddressBlocked | null {
    return this.#blockedBy;
  }

  /** Never throws. */
  async send(signal: AbortSignal): Promise<Outcome> {
    const { timeoutSeconds } = this.#options.attempt;
    const given = Promise.withResolvers<Outcome>();
    const onDeadline = () => given.resolve(this.#givenUp('timeout', `no answer within ${timeoutSeconds} s`));
    const onStop = () => given.resolve(this.#givenUp('network', 'firelock stopped', true));
    const deadline = setTimeout(onDeadline, timeoutSeconds * 1000);
    signal.addEventListener('abort', onStop, { once: true });
    try {
      return await Promise.race([given.promise, this.#talk()]);
    } finally {
      clearTimeout(deadline);
      signal.removeEventListener('abort', onStop);
      this.#end();
    }
  }

  async #talk(): Promise<Outcome> {
    const { attempt, mail, server } = this.#options;
    try {
      const socket = await this.#connect();
      if (!attempt.mayStart()) return LOST;
      const smtp = this.#begin(socket);
      await stepOf(smtp, (done) => smtp.connect(done));
      const { auth } = server;
      if (auth !== null) await stepOf(smtp, (done) => smtp.login({ credentials: auth }, done));
      if (!attempt.mayStart()) return LOST;
      const { from, to } = mail;
      const info = await stepOf<SentMail>(smtp, (done) => smtp.send({ from, to }, this.#text(), done));
      return acceptedBy(info);
    } catch (error) {
      if (error instanceof AddressBlocked) {
        this.#blockedBy = error;
        return blocked();
      }
      return failedWith(error as SmtpFailure, this.#handsOver);
    }
  }

  #connect(): Promise<Socket> {
    const { host, port } = this.#options.server;
    return new Promise((resolve, reject) => {
      this.#socket = this.#options.dial(
        { hostname: host, protocol: 'smtp:', port: String(port) },
        (...[error, socket]) => {
          if (error === null) resolve(socket);
          else reject(error);
        },
      );
    });
  }

  #begin(connection: Socket): SmtpConnection {
    const { server, attempt } = this.#options;
    const limit = attempt.timeoutSeconds * 1000;
    this.#smtp = new SmtpConnection({
      ...{ host: server.host, port: server.port, secure: server.secure, connection },
      requireTLS: server.requireTLS && !server.secure,
      tls: { rejectUnauthorized: !server.trustsAny },
      // The attempt has one deadline of its own.
      ...{ connectionTimeout: limit, greetingTimeout: limit, socketTimeout: limit },
    });
    return this.#smtp;
  }

  /** It is read once the server has asked for it. */
  #text(): Readable {
    const text = new Readable({
      read: () => {
        this.#handsOver = true;
        text.push(this.#options.mail.bytes);
        text.push(null);
      },
    });
    return text;
  }

  #givenUp(kind: 'timeout' | 'network', why: string, senderStopped = false): Outcome {
    if (!this.#handsOver) return notSent({ kind, message: `${why}: nothing was handed over` }, senderStopped);
    return { kind: 'unknown', error: { kind, message: `${why} to the mail` }, senderStopped };
  }

  #end(): void {
    const [smtp, socket] = [this.#smtp, this.#socket];
    if (smtp === null) socket?.destroy();
    else {
      smtp.on('error', () => undefined);
      smtp.close();
    }
  }
}

const LOST = notSent(
  { kind: 'network', message: 'not sent: this instance might have lost the run to another one' },
  true,
);

/** What a step answers, or the first error of the connection meanwhile. */
function stepOf<Result>(
  smtp: SmtpConnection,
  step: (done: (error?: Error | null, result?: Result) => void) => void,
): Promise<Result> {
  return new Promise((resolve, reject) => {
    smtp.once('error', reject);
    step((error, result) => {
      smtp.off('error', reject);
      if (error) reject(error);
      else resolve(result as Result);
    });
  });
}

/** A mail as it goes over the wire, and whose it is. */
export interface ComposedMail {
  from: string;
  to: string[];
  bytes: Buffer;
}

/** What nodemailer says of a mail that the server took, at least for some of those it goes to. */
interface SentMail {
  response: string;
  rejectedErrors?: readonly SmtpFailure[] | undefined;
}

/** An error of nodemailer. */
interface SmtpFailure extends Error {
  code?: string | undefined;
  /** The server's answer, and its code. */
  response?: string | undefined;
  responseCode?: number | undefined;
  /** The address that the server refused. */
  recipient?: string | undefined;
}

/** The answer says which recipients did not get it: sent again, it would arrive twice at the others. */
function acceptedBy({ response, rejectedErrors = [] }: SentMail): Outcome {
  const refused = rejectedErrors.map(({ recipient = 'somebody', response: why = '' }) => `not to ${recipient}: ${why}`);
  return {
    kind: 'accepted',
    statusCode: codeIn(response),
    body: kept([response, ...refused].join('\n')),
    executionId: null,
  };
}

/**
 * A mail is refused for good by an answer 5xx to itself. What the server says before, of the connection or the login, is a matter of
 * settings that somebody may correct: then it is tried again.
 */
export function failedWith(failure: SmtpFailure, handsOver: boolean): Outcome {
  const { code, responseCode, response = '', message } = failure;
  if (responseCode === undefined || !OF_THE_MAIL.has(code ?? '')) {
    if (handsOver && responseCode === undefined)
      return {
        kind: 'unknown',
        error: { kind: 'network', message: keptMessage(message) },
        senderStopped: false,
      };
    return notSentBecause(failure, keptMessage(message));
  }
  const error: AttemptError = {
    kind: 'reported',
    message: keptMessage(`the mail server answered ${response}`),
    statusCode: responseCode,
  };
  if (responseCode >= 500) return { kind: 'rejected', statusCode: responseCode, body: kept(response), error };
  return { ...notSent(error), statusCode: responseCode, body: kept(response) };
}

/** nodemailer's codes for answers to MAIL FROM, RCPT TO and DATA, and to the text. */
const OF_THE_MAIL: ReadonlySet<string> = new Set(['EENVELOPE', 'EMESSAGE']);

const MAX_MESSAGE = 500;

function keptMessage(message: string): string {
  return kept(message).replace(/\s+/g, ' ').slice(0, MAX_MESSAGE).toWellFormed();
}

function kept(text: string): string {
  return keptText(Buffer.from(text));
}

function codeIn(response: string): number {
  return Number(/^\d{3}/.exec(response)?.[0] ?? 250);
}
