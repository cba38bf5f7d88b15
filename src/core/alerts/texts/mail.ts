import type { Message, ToldAlert } from '../alert.ts';
import { alertText, inOneLine, passedOnText, titleOf } from './sentences.ts';

/** A mail of one part, in plain text. */
export interface Mail {
  subject: string;
  text: string;
}

const MAX_SUBJECT = 150;
const MAX_ERROR = 1_000;

export function mailOf(message: Message): Mail {
  const { alerts, more, notifier } = message;
  const [first] = alerts;
  const isOne = first !== undefined && alerts.length === 1 && more === 0;
  const subject = isOne ? alertText(message, first, MAX_ERROR).headline : titleOf(message);
  const names = isOne || !first ? '' : `: ${alerts.map(({ scheduleId }) => scheduleId).join(', ')}`;
  const blocks = alerts.map((alert) => blockOf(message, alert));
  if (more > 0) blocks.push(`… and ${more} more`);
  const passedOn = passedOnText(message);
  if (passedOn !== null) blocks.push(passedOn);
  if (alerts.length === 0) blocks.push(titleOf(message));
  return {
    subject: inOneLine(`[firelock] ${subject}${names}`, MAX_SUBJECT),
    text: `${blocks.join('\n\n')}\n\n-- \nfirelock, notifier ${notifier}\n`,
  };
}

function blockOf(message: Message, alert: ToldAlert): string {
  const { headline, when, error, meaning } = alertText(message, alert, MAX_ERROR);
  return [
    headline,
    when,
    ...(error === null ? [] : [`Error: ${error}`]),
    ...(meaning === null ? [] : [meaning]),
    ...(alert.runId === null ? [] : [`Run: ${alert.runId}`]),
    ...(alert.url === null ? [] : [alert.url]),
  ].join('\n');
}

/** An address as it is written to: its domain in ASCII. Null: it is none, or one that not every mail server takes. */
export function mailAddress(text: string): string | null {
  const at = text.lastIndexOf('@');
  const [local, domain] = [text.slice(0, at), mailDomain(text.slice(at + 1))];
  return at < 1 || domain === null || !LOCAL.test(local) ? null : `${local}@${domain}`;
}

/** RFC 5321 without quotes: visible ASCII but what has a meaning in a header. */
const LOCAL = /^[!#$%&'*+\-./0-9=?A-Z^_`a-z{|}~]{1,64}$/;
const LABELS = /^(?=.{1,253}$)(?:[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?\.)*[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?$/;

function mailDomain(text: string): string | null {
  // IDNA leaves out what nobody sees: that name would look like another one.
  if (/[\p{White_Space}\p{C}]|[:/?#%@[\]\\]/u.test(text)) return null;
  const ascii = URL.parse(`http://${text}/`)?.hostname ?? '';
  return LABELS.test(ascii) && !/^[\d.]+$/.test(ascii) ? ascii : null;
}

/** Domains to which mail may go; `.example.com` stands for all below one. */
export function parseMailDomains(text: string): [domains: string[], faults: { entry: string; message: string }[]] {
  const entries = text.split(',').map((entry) => entry.trim());
  const read = entries.map((entry) => {
    const below = entry.startsWith('.') ? '.' : '';
    const domain = mailDomain(entry.slice(below.length));
    return domain === null ? null : below + domain;
  });
  const faults = entries.flatMap((entry, index) =>
    read[index] === null ? [{ entry, message: 'is no domain such as example.com or .example.com' }] : [],
  );
  return [read.filter((domain) => domain !== null), faults];
}

/** `domains`: none stand for all. */
export function mayMailTo(domains: readonly string[], address: string): boolean {
  const domain = address.slice(address.lastIndexOf('@') + 1).toLowerCase();
  const fits = (one: string) => (one.startsWith('.') ? domain.endsWith(one) : domain === one);
  return domains.length === 0 || domains.some(fits);
}
