import MailComposer from 'nodemailer/lib/mail-composer';
import type { Mail } from '../core/alerts/texts/mail.ts';
import type { Instant } from '../core/instant.ts';
import type { Attempt } from './target.ts';

/** A mail as it goes over the wire, and whose it is. */
export interface ComposedMail {
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
