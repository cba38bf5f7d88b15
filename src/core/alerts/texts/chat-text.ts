import type { Message, ToldAlert } from '../message.ts';
import { alertText, passedOnText, titleOf } from './sentences.ts';

/** Discord takes no longer text; Slack would, and nobody reads it. In UTF-16 units, as Discord counts at most. */
const MAX_LENGTH = 2_000;
/** Kept for the line that counts the rest. */
const ROOM_FOR_REST = 40;
const MAX_ERROR = 300;

/** The text of Slack's incoming webhooks (mrkdwn), which Mattermost, Rocket.Chat and Discord show as well. */
export function chatText(message: Message): string {
  const { alerts, more, event } = message;
  const lines = alerts.length === 1 && more === 0 ? [] : [`*${safe(titleOf(message))}*`];
  const passedOn = passedOnText(message);
  if (passedOn !== null) lines.push(passedOn);
  let [told, length] = [0, lines.join('\n').length];
  for (const alert of alerts) {
    const block = blockOf(message, alert, alerts.length === 1);
    if (length + 1 + block.length > MAX_LENGTH - ROOM_FOR_REST) break;
    lines.push(block);
    length += 1 + block.length;
    told += 1;
  }
  const rest = alerts.length - told + more;
  if (event !== 'test' && rest > 0) lines.push(`… and ${rest} more`);
  return lines.join('\n');
}

function blockOf(message: Message, alert: ToldAlert, isAlone: boolean): string {
  const { headline, when, error, meaning } = alertText(message, alert, isAlone ? MAX_ERROR : MAX_ERROR / 3);
  const what = isAlone ? `*${safe(headline)}*` : `• *${safe(headline)}*`;
  const url = alert.url === null ? [] : [safe(alert.url)];
  if (!isAlone) return [`${what}, ${when}${error === null ? '' : `: ${safe(error)}`}`, ...url].join('\n');
  const said = error === null ? [] : [`Error: ${safe(error)}`];
  return [what, when, ...said, ...(meaning === null ? [] : [meaning]), ...url].join('\n');
}

/**
 * What a target answered stands in the text, and must neither be a link nor call anybody: Slack reads its commands between `<` and
 * `>`, Mattermost and Discord read `@all` and `@everyone`.
 */
function safe(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('@', '@\u200b');
}
