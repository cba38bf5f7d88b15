import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import SmtpConnection from 'nodemailer/lib/smtp-connection';
import type { SmtpServer } from '../config/smtp-url.ts';
import { blocked, notSent, type Outcome } from '../core/runs/attempts/outcome.ts';
import { AddressBlocked } from './address-guard.ts';
import type { Dial } from './http-connect.ts';
import { acceptedBy, failedWith, type SmtpFailure } from './smtp-outcome.ts';
import type { Attempt } from './target.ts';
import MailComposer from 'nodemailer/lib/mail-composer';
import type { Mail } from '../core/alerts/texts/mail.ts';
import type { Instant } from '../core/instant.ts';

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
      const info = await stepOf<Sent>(smtp, (done) => smtp.send({ from, to }, this.#text(), done));
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

type Sent = Parameters<typeof acceptedBy>[0];

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
interface ComposedMail {
  from: string;
  to: string[];
  bytes: Buffer;
}

interface MailDraft {
  /** As FIRELOCK_MAIL_FROM has it. */
  from: string;
  to: readonly string[];
  attempt: Pick<Attempt, 'runId' | 'payload'>;
  now: Instant;
}

/** Each attempt of a run has the same `Message-ID`, so that a mail that arrives twice is seen to be the same. */
export async function composeMail({
  from,
  to,
  attempt: { runId, payload },
  now,
}: MailDraft): Promise<ComposedMail | { fault: string }> {
  const mail = mailIn(payload);
  if (mail === null) return { fault: 'the payload of the run is no mail' };
  const address = /<([^<>]+)>$/.exec(from)?.[1] ?? from;
  const bytes = await new MailComposer({
    ...{ from, to: [...to], subject: mail.subject, text: mail.text },
    messageId: `<${runId}@${address.slice(address.indexOf('@') + 1)}>`,
    date: new Date(now),
    // RFC 3834: no automatic answers, please.
    headers: { 'Auto-Submitted': 'auto-generated' },
  })
    .compile()
    .build();
  return { from: address, to: [...to], bytes };
}

function mailIn(payload: string | null): Mail | null {
  try {
    const { subject, text } = JSON.parse(payload ?? '{}') as Partial<Mail>;
    return typeof subject === 'string' && typeof text === 'string' ? { subject, text } : null;
  } catch {
    return null;
  }
}
