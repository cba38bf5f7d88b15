import { isoInstant, isoOrNull } from '../../instant.ts';
import type { Message } from '../message.ts';
import type { ChannelType } from '../notifier.ts';
import { chatText, slackBlocks } from './chat-text.ts';
import { mailOf } from './mail.ts';
import { pagerDutyEvent } from './pagerduty-event.ts';

/** What the run of a message carries, as JSON. For PagerDuty it is about one episode at most. `isSlack`: it goes to Slack itself. */
export function payloadOf(channel: ChannelType, message: Message, isSlack = false): string {
  switch (channel) {
    case 'webhook':
      return JSON.stringify(messageJson(message));
    case 'slack':
      return JSON.stringify({ text: chatText(message), ...(isSlack && { blocks: slackBlocks(message) }) });
    case 'pagerduty':
      return JSON.stringify(pagerDutyEvent(message));
    case 'email':
      return JSON.stringify(mailOf(message));
  }
}

/** Field by field: what is added to an episode later must not leave firelock unseen. */
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
