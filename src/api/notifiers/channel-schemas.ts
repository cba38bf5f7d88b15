import { z } from 'zod';
import { mailAddress } from '../../core/alerts/mail-address.ts';
import { CHANNEL_TYPES } from '../../core/alerts/notifier.ts';
import { ALWAYS, text } from '../http/common-schemas.ts';
import { isObject } from '../http/json/json-body.ts';
import { notAFieldOf, typeFaultOf } from '../http/kind-faults.ts';
import { MASK } from '../targets/http-call-schemas.ts';
import { answeredHttpTarget, httpInput } from '../targets/schemas.ts';

/** PagerDuty's Events API v2. */
const PAGERDUTY_URL = 'https://events.pagerduty.com/v2/enqueue';

const MAX_ADDRESSES = 50;
/** RFC 5321, 4.5.3.1. */
const MAX_ADDRESS_LENGTH = 254;

const webhook = z
  .strictObject({ type: z.literal('webhook'), target: httpInput }, ofChannel('webhook'))
  .meta({ id: 'WebhookChannel', description: 'Sends the message as JSON, or what `body` makes of it.' });

const slack = z
  .strictObject({ type: z.literal('slack'), target: sending('slack') }, ofChannel('slack'))
  .meta({
    id: 'SlackChannel',
    description:
      'Sends a text as the incoming webhooks of Slack, Mattermost, Rocket.Chat and Discord (`/slack`) take it.',
  });

const pagerduty = z
  .strictObject(
    {
      type: z.literal('pagerduty'),
      target: sending('pagerduty').prefault({ type: 'http', url: PAGERDUTY_URL }),
      routingKey: text(255)
        .regex(/^[\x21-\x7e]+$/, { error: 'must be 1 to 255 characters of ASCII without spaces' })
        .meta({
          description: `Of an integration of the Events API v2. Write-only, stored encrypted: answered as "${MASK}", which sent back keeps the stored value where the origin of the target's URL is unchanged.`,
          example: 'R0000000000000000000000000000000',
        }),
    },
    ofChannel('pagerduty'),
  )
  .meta({
    id: 'PagerDutyChannel',
    description: `One incident for each episode, which its end resolves. Without a \`target\`: to ${PAGERDUTY_URL}.`,
  });

const NO_ADDRESS = { error: 'must be an address such as ops@example.com' };
const address = text(MAX_ADDRESS_LENGTH)
  // eslint-disable-next-line no-control-regex -- these are what it refuses; not by \\P{Cc}, which few tools read
  .regex(/^[^\x00-\x20\x7f-\uffff@<>,;:"()[\]\\]{1,64}@[^\x00-\x20\x7f-\x9f@<>,;:"()[\]\\]+$/u, NO_ADDRESS)
  .refine((given) => mailAddress(given) !== null, NO_ADDRESS)
  .meta({ example: 'ops@example.com' });

const email = z
  .strictObject(
    {
      type: z.literal('email'),
      to: z
        .array(address)
        .min(1)
        .max(MAX_ADDRESSES)
        .refine((list) => new Set(list).size === list.length, { error: 'must not have an address twice' }),
    },
    ofChannel('email'),
  )
  .meta({ id: 'EmailChannel', description: 'Mail by `FIRELOCK_SMTP_URL`, from `FIRELOCK_MAIL_FROM`.' });

export const channelInput = z
  .discriminatedUnion('type', [webhook, slack, pagerduty, email], { error: typeFaultOf(CHANNEL_TYPES) })
  .meta({ id: 'Channel', description: 'Where its messages go, and in which form, by `type`.' });
export type ChannelInput = z.output<typeof channelInput>;

export const answeredChannel = z
  .discriminatedUnion('type', [
    z
      .object({ type: z.literal('webhook'), target: answeredHttpTarget })
      .meta({ id: 'AnsweredWebhookChannel' }),
    z.object({ type: z.literal('slack'), target: answeredHttpTarget }).meta({ id: 'AnsweredSlackChannel' }),
    z
      .object({ type: z.literal('pagerduty'), target: answeredHttpTarget, routingKey: z.string() })
      .meta({ id: 'AnsweredPagerDutyChannel', description: `The routing key is "${MASK}".` }),
    z.object({ type: z.literal('email'), to: z.array(z.string()) }).meta({ id: 'AnsweredEmailChannel' }),
  ])
  .meta({ id: 'AnsweredChannel', description: `A channel; each secret value is "${MASK}".` });

/** The form is the channel's: what a target may say about its body elsewhere would be without effect. */
function sending(type: 'slack' | 'pagerduty') {
  return httpInput.superRefine((target: unknown, context) => {
    if (!isObject(target)) return;
    const refuse = (name: string, message: string) =>
      context.addIssue({ code: 'custom', path: [name], message });
    const { method, body } = target;
    if (method === 'GET' || method === 'HEAD')
      refuse('method', `must be one with a body: it carries what ${type} is told`);
    else if (body !== 'envelope')
      refuse('body', `must be "envelope" or absent: a channel of type "${type}" has its own`);
  }, ALWAYS);
}

function ofChannel(type: string) {
  return { error: notAFieldOf(`a channel of type "${type}"`) };
}
