import { isoInstant, isoOrNull } from '../../instant.ts';
import type { Message } from '../alert.ts';
import { chatText, slackBlocks } from './chat-text.ts';
import { mailOf } from './mail.ts';
import { pagerDutyEvent } from './pagerduty-event.ts';

/** A form in which a notifier speaks. `api/notifiers/channel-setups.ts` says how it is set up, and where it is sent. */
interface Channel {
  /** What the run of a message carries. `isSlack`: it goes to Slack itself. */
  say: (message: Message, isSlack: boolean) => object;
  /** Each message is about one episode at most, and nothing is gathered. */
  isApart: boolean;
}

const CHANNELS = {
  webhook: { say: messageJson, isApart: false },
  slack: {
    say: (message, isSlack) => ({
      text: chatText(message),
      ...(isSlack && { blocks: slackBlocks(message) }),
    }),
    isApart: false,
  },
  pagerduty: { say: pagerDutyEvent, isApart: true },
  email: { say: mailOf, isApart: false },
} as const satisfies Record<string, Channel>;

export type ChannelType = keyof typeof CHANNELS;
export const CHANNEL_TYPES = Object.keys(CHANNELS) as ChannelType[];

/** As JSON. */
export function payloadOf(channel: ChannelType, message: Message, isSlack = false): string {
  return JSON.stringify(CHANNELS[channel].say(message, isSlack));
}

export function tellsApart({ channel }: { channel: ChannelType }): boolean {
  return CHANNELS[channel].isApart;
}

/** Field by field: what is added to an episode later is not sent out by accident. */
function messageJson({ notifier, event, at, alerts, more, fallbackFor }: Message) {
  const told = alerts.map(({ scheduleId, kind, since, until, runId, status, error, labels, url }) => ({
    scheduleId,
    kind,
    since: isoInstant(since),
    until: isoOrNull(until),
    runId,
    status,
    error,
    labels,
    url,
  }));
  const passedOn = fallbackFor === null ? {} : { fallbackFor };
  return { notifier, event, at: isoInstant(at), alerts: told, more, ...passedOn };
}
