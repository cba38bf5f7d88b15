import MailComposer from 'nodemailer/lib/mail-composer';
import type { SmtpServer } from '../config/smtp-url.ts';
import { type Mail, mayMailTo } from '../core/alerts/texts/mail.ts';
import type { Instant } from '../core/instant.ts';
import { type Outcome, notSent } from '../core/runs/attempts/outcome.ts';
import type { EmailTarget } from '../core/schedules/schedule.ts';
import { createResolver } from '../runtime/names/resolver.ts';
import { createAddressGuard } from './address-guard.ts';
import type { HttpTargetDeps } from './http-calls.ts';
import { createDialWith, type Dial } from './http-connect.ts';
import { type ComposedMail, SmtpSession } from './smtp-session.ts';
import type { Attempt, CancelAnswer, LookupAnswer, TargetKind } from './target.ts';

interface EmailTargetDeps extends Pick<HttpTargetDeps, 'clock' | 'guard' | 'resolve' | 'events'> {
  /** Null: this instance has none. */
  mail: { server: SmtpServer; from: string } | null;
  /** Where mail may go, as long as the notifier was stored; absent or none: anywhere. */
  mailToDomains?: readonly string[];
}

/** Hands messages of notifiers to a mail server, each over a connection of its own. */
export function createEmailTarget(deps: EmailTargetDeps): TargetKind<EmailTarget> {
  return new EmailKind(deps);
}

class EmailKind implements TargetKind<EmailTarget> {
  readonly type = 'email';
  readonly #deps: EmailTargetDeps;
  readonly #dial: Dial;
  readonly #underWay = new Set<Promise<Outcome>>();
  #closing = false;

  constructor(deps: EmailTargetDeps) {
    this.#deps = deps;
    const { guard = createAddressGuard(), resolve = createResolver({ mostAtOnce: 100 }) } = deps;
    // The egress proxy is for targets that users name, and hardly any lets mail pass.
    this.#dial = createDialWith({ guard, resolve, proxy: null })(null);
  }

  laneOf(): string {
    return this.#deps.mail?.server.host ?? '';
  }

  async deliver(target: EmailTarget, attempt: Attempt, signal: AbortSignal): Promise<Outcome> {
    const { mail, mailToDomains = [] } = this.#deps;
    if (mail === null) return notSent({ kind: 'network', message: NO_SERVER });
    const to = target.to.filter((address) => mayMailTo(mailToDomains, address));
    if (to.length === 0) return { kind: 'blocked', error: { kind: 'blocked', message: NOWHERE } };
    if (this.#closing || signal.aborted)
      return notSent({ kind: 'network', message: 'firelock stopped before the mail was sent' }, true);
    const sending = this.#send(mail, { ...target, to }, attempt, signal);
    this.#underWay.add(sending);
    try {
      return await sending;
    } finally {
      this.#underWay.delete(sending);
    }
  }

  async #send(
    { server, from }: NonNullable<EmailTargetDeps['mail']>,
    { to }: EmailTarget,
    attempt: Attempt,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const composed = await composeMail({ from, to, attempt, now: this.#deps.clock.now() });
    if ('fault' in composed) return notSent({ kind: 'network', message: composed.fault });
    const session = new SmtpSession({ server, mail: composed, attempt, dial: this.#dial });
    const outcome = await session.send(signal);
    const { runId, scheduleId, attempt: number } = attempt;
    if (session.blockedBy !== null) {
      const { address, because } = session.blockedBy;
      const origin = `${server.secure ? 'smtps' : 'smtp'}://${server.host}:${server.port}`;
      const type = 'targetBlocked';
      this.#deps.events?.emit({ type, runId, scheduleId, attempt: number, origin, address, because });
    }
    return outcome;
  }

  hasLookup(): boolean {
    return false;
  }

  lookup(): Promise<LookupAnswer> {
    return Promise.resolve({ kind: 'unclear', error: { kind: 'network', message: 'mail has no lookup' } });
  }

  hasCancel(): boolean {
    return false;
  }

  cancel(): Promise<CancelAnswer> {
    return Promise.resolve({ kind: 'network', message: 'mail cannot be called back' });
  }

  async close(): Promise<void> {
    this.#closing = true;
    await Promise.all(this.#underWay);
  }
}

const NOWHERE = 'nothing was sent: FIRELOCK_MAIL_TO_DOMAINS lets no mail go to these addresses';
const NO_SERVER =
  'nothing was sent: this instance has no mail server: FIRELOCK_SMTP_URL and FIRELOCK_MAIL_FROM are not set';

interface MailDraft {
  /** As FIRELOCK_MAIL_FROM has it. */
  from: string;
  to: readonly string[];
  attempt: Pick<Attempt, 'runId' | 'payload'>;
  now: Instant;
}

/** Each attempt of a run has the same `Message-ID`, so that a mail that arrives twice is seen to be the same. */
async function composeMail({
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
