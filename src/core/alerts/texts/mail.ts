import type { Message, ToldAlert } from '../message.ts';
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
