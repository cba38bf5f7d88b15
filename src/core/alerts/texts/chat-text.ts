import type { Message, ToldAlert } from '../alert.ts';
import { alertText, passedOnText, titleOf } from './sentences.ts';

/** Discord takes no longer text; Slack would, and nobody reads it. In UTF-16 units, as Discord counts at most. */
const MAX_LENGTH = 2_000;
/** Kept for the line that counts the rest. */
const ROOM_FOR_REST = 40;
const MAX_ERROR = 300;

/** The text of Slack's incoming webhooks (mrkdwn), which Mattermost, Rocket.Chat and Discord show as well. */
export function chatText(message: Message): string {
  return linesOf(message, (alert) => (alert.url === null ? [] : [safe(alert.url)])).join('\n');
}

/** Of Slack's own webhooks: a text without any markup, and the links beside it. */
export function slackBlocks(message: Message): object[] {
  const plain = linesOf(message, () => [])
    .join('\n')
    .replaceAll(/[*`]/g, '');
  const links = message.alerts.flatMap(({ url, scheduleId }) =>
    url === null ? [] : [`<${safe(url)}|${safe(scheduleId)}>`],
  );
  return [
    { type: 'section', text: { type: 'plain_text', text: unescaped(plain), emoji: false } },
    ...(links.length === 0
      ? []
      : [{ type: 'section', text: { type: 'mrkdwn', text: links.slice(0, MAX_LINKS).join(' · ') } }]),
  ];
}

/** A block takes 3,000 characters. */
const MAX_LINKS = 5;

function linesOf(message: Message, linksOf: (alert: ToldAlert) => string[]): string[] {
  const { alerts, more, event } = message;
  const lines = alerts.length === 1 && more === 0 ? [] : [`*${safe(titleOf(message))}*`];
  const passedOn = passedOnText(message);
  if (passedOn !== null) lines.push(passedOn);
  let [told, length] = [0, lines.join('\n').length];
  for (const alert of alerts) {
    const block = blockOf(message, alert, { isAlone: alerts.length === 1, links: linksOf(alert) });
    if (length + 1 + block.length > MAX_LENGTH - ROOM_FOR_REST) break;
    lines.push(block);
    length += 1 + block.length;
    told += 1;
  }
  const rest = alerts.length - told + more;
  if (event !== 'test' && rest > 0) lines.push(`… and ${rest} more`);
  return lines;
}

function blockOf(
  message: Message,
  alert: ToldAlert,
  { isAlone, links }: { isAlone: boolean; links: readonly string[] },
): string {
  const { headline, when, error, meaning } = alertText(message, alert, isAlone ? MAX_ERROR : MAX_ERROR / 3);
  const what = isAlone ? `*${safe(headline)}*` : `• *${safe(headline)}*`;
  if (!isAlone) return [`${what}, ${when}${error === null ? '' : `: ${foreign(error)}`}`, ...links].join('\n');
  const said = error === null ? [] : [`Error: ${foreign(error)}`];
  return [what, when, ...said, ...(meaning === null ? [] : [meaning]), ...links].join('\n');
}

/** Slack reads its commands between `<` and `>`, Mattermost and Discord read `@all` and `@everyone`. */
function safe(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('@', `@${UNSEEN}`);
}

/**
 * What a target answered: neither a link, nor a picture, nor a mention, nor markup. All of them show code as it is, and what might be a
 * link is none even where one does not: a character that nobody sees stands in between.
 */
function foreign(text: string): string {
  const torn = text.replaceAll('`', "'").replaceAll(/[[\]!~#]|:(?=\S)|\.(?=\p{L})/gu, (found) => found + UNSEEN);
  return `\`${safe(torn)}\``;
}

const UNSEEN = '\u200b';

function unescaped(text: string): string {
  return text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&');
}
