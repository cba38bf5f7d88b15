import { type AttemptError, type Outcome, keptText, notSent } from '../core/runs/attempts/outcome.ts';
import { notSentBecause } from './exchange-outcomes.ts';

/** What nodemailer says of a mail that the server took, at least for some of those it goes to. */
interface SentMail {
  response: string;
  rejectedErrors?: readonly SmtpFailure[] | undefined;
}

/** An error of nodemailer. */
export interface SmtpFailure extends Error {
  code?: string | undefined;
  /** The server's answer, and its code. */
  response?: string | undefined;
  responseCode?: number | undefined;
  /** The address that the server refused. */
  recipient?: string | undefined;
}

/** The answer says which recipients did not get it: sent again, it would arrive twice at the others. */
export function acceptedBy({ response, rejectedErrors = [] }: SentMail): Outcome {
  const refused = rejectedErrors.map(
    ({ recipient = 'somebody', response: why = '' }) => `not to ${recipient}: ${why}`,
  );
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
