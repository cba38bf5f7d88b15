import { z } from 'zod';
import { mailAddress, mayMailTo } from '../../core/alerts/texts/mail.ts';
import { CHANNEL_TYPES } from '../../core/alerts/texts/channels.ts';
import { pagingBody, routingKeyOf } from '../../core/alerts/texts/pagerduty-event.ts';
import { type HandoffTarget, type HttpTarget, destinationOf } from '../../core/schedules/schedule.ts';
import type { Credential } from '../../core/secrets/sealed-values.ts';
import { ALWAYS, text, notAFieldOf, typeFaultOf } from '../http/common-schemas.ts';
import { pointer } from '../../core/json-text.ts';
import { isObject } from '../http/json/json-body.ts';
import type { Fault } from '../http/problem.ts';
import { answerHttpTarget } from '../targets/answers.ts';
import { MASK } from '../targets/http-call-schemas.ts';
import { unmaskHttpTarget } from '../targets/inputs.ts';
import type { FileRules } from '../targets/secret-files.ts';
import { answeredHttpTarget, httpInput } from '../targets/schemas.ts';

/** How a channel is set up: what is sent and answered of it, what its messages are handed to. What they say: `core/alerts/texts/`. */
interface Channel<Input extends z.ZodType, Answered extends z.ZodType, Target extends HandoffTarget> {
  input: Input;
  answered: Answered;
  /** Values that were sent masked are filled in from `stored`; `refuse` says why one cannot be. */
  targetOf: (given: z.output<Input>, from: Filling) => Target;
  answerOf: (target: Target) => z.output<Answered>;
  /** Where a secret value of the target stands in the channel. */
  placeOf: (steps: readonly string[]) => string;
}

export interface Filling {
  stored: HandoffTarget | null;
  mail: { sends: boolean; domains: readonly string[] };
  files: FileRules;
  faults: Fault[];
  /** Answered with 422: well-formed, but not allowed. */
  impossible: Fault[];
}

function channel<Input extends z.ZodType, Answered extends z.ZodType, Target extends HandoffTarget>(
  one: Channel<Input, Answered, Target>,
): Channel<Input, Answered, Target> {
  return one;
}

const ofTarget = (steps: readonly string[]) => pointer(['channel', 'target', ...steps]);

/** The target is all of it. */
const httpChannel = <Type extends 'webhook' | 'slack'>(
  type: Type,
  target: typeof httpInput,
  meta: { id: string; description: string },
) =>
  channel({
    input: z.strictObject({ type: z.literal(type), target }, ofChannel(type)).meta(meta),
    answered: z.object({ type: z.literal(type), target: answeredHttpTarget }).meta({ id: `Answered${meta.id}` }),
    targetOf: ({ target: given }, from) => unmasked(given, from),
    answerOf: (stored: HttpTarget) => ({ type, target: answerHttpTarget(stored) }),
    placeOf: ofTarget,
  });

const webhook = httpChannel('webhook', httpInput, {
  id: 'WebhookChannel',
  description: 'Sends the message as JSON, or what `body` makes of it.',
});

const slack = httpChannel('slack', sending('slack'), {
  id: 'SlackChannel',
  description:
    'Sends a text as the incoming webhooks of Slack, Mattermost, Rocket.Chat and Discord (`/slack`) take it.',
});

/** PagerDuty's Events API v2. */
const PAGERDUTY_URL = 'https://events.pagerduty.com/v2/enqueue';

const pagerduty = channel({
  input: z
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
    }),
  answered: z
    .object({ type: z.literal('pagerduty'), target: answeredHttpTarget, routingKey: z.string() })
    .meta({ id: 'AnsweredPagerDutyChannel', description: `The routing key is "${MASK}".` }),
  targetOf: ({ target: given, routingKey }, from) => {
    const target = unmasked(given, from);
    return { ...target, body: pagingBody(keptKey(routingKey, target, from)) };
  },
  answerOf: (target: HttpTarget) => ({
    type: 'pagerduty' as const,
    target: answerHttpTarget({ ...target, body: 'envelope' }),
    routingKey: MASK,
  }),
  placeOf: (steps) => (steps[0] === 'body' ? '/channel/routingKey' : ofTarget(steps)),
});

const MAX_ADDRESSES = 50;
/** RFC 5321, 4.5.3.1. */
const MAX_ADDRESS_LENGTH = 254;
const NO_ADDRESS = { error: 'must be an address such as ops@example.com' };
const address = text(MAX_ADDRESS_LENGTH)
  // oxlint-disable-next-line no-control-regex -- these are what it refuses; not by \\P{Cc}, which few tools read
  .regex(/^[^\x00-\x20\x7f-\uffff@<>,;:"()[\]\\]{1,64}@[^\x00-\x20\x7f-\x9f@<>,;:"()[\]\\]+$/u, NO_ADDRESS)
  .refine((given) => mailAddress(given) !== null, NO_ADDRESS)
  .meta({ example: 'ops@example.com' });

const email = channel({
  input: z
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
    .meta({ id: 'EmailChannel', description: 'Mail by `FIRELOCK_SMTP_URL`, from `FIRELOCK_MAIL_FROM`.' }),
  answered: z.object({ type: z.literal('email'), to: z.array(z.string()) }).meta({ id: 'AnsweredEmailChannel' }),
  targetOf: (given, { mail, faults, impossible }) => {
    if (!mail.sends) faults.push({ path: '/channel/type', message: NO_MAIL });
    const to = given.to.map((one) => mailAddress(one) ?? one);
    for (const [index, one] of to.entries())
      if (!mayMailTo(mail.domains, one)) impossible.push({ path: `/channel/to/${index}`, message: ELSEWHERE });
    return { type: 'email', to };
  },
  answerOf: ({ to }: Extract<HandoffTarget, { type: 'email' }>) => ({ type: 'email' as const, to }),
  placeOf: ofTarget,
});

export const CHANNEL_SETUPS = { webhook, slack, pagerduty, email };

export const channelInput = z
  .discriminatedUnion('type', [webhook.input, slack.input, pagerduty.input, email.input], {
    error: typeFaultOf(CHANNEL_TYPES),
  })
  .meta({ id: 'Channel', description: 'Where its messages go, and in which form, by `type`.' });

export const answeredChannel = z
  .discriminatedUnion('type', [webhook.answered, slack.answered, pagerduty.answered, email.answered])
  .meta({ id: 'AnsweredChannel', description: `A channel; each secret value is "${MASK}".` });

function unmasked(given: Parameters<typeof unmaskHttpTarget>[0], from: Filling): HttpTarget {
  const { stored, files } = from;
  const found = { faults: [] as Fault[], impossible: [] as Fault[] };
  const target = unmaskHttpTarget(given, stored?.type === 'http' ? stored : null, found, files);
  for (const kind of ['faults', 'impossible'] as const)
    from[kind].push(...found[kind].map(({ path, message }) => ({ path: `/channel${path}`, message })));
  return target;
}

/** A routing key is kept only for where it goes already. */
function keptKey(given: string, target: HttpTarget, { stored, faults }: Filling): Credential {
  if (given !== MASK) return given;
  const path = '/channel/routingKey';
  const destination = ({ connection, url }: HttpTarget) => destinationOf(connection, url);
  const known = stored?.type === 'http' ? stored : null;
  const key = known === null ? undefined : routingKeyOf(known);
  if (known === null || key === undefined)
    faults.push({ path, message: `is "${MASK}", but there is no stored value to keep` });
  else if (destination(known) !== destination(target))
    faults.push({ path, message: 'must be given again, since where it is sent to changes' });
  return key ?? given;
}

const NO_MAIL = 'cannot be "email": firelock has no mail server; set FIRELOCK_SMTP_URL and FIRELOCK_MAIL_FROM';
const ELSEWHERE = 'is at a domain to which FIRELOCK_MAIL_TO_DOMAINS lets no mail go';

/** The form is the channel's: what a target may say about its body elsewhere would be without effect. */
function sending(type: 'slack' | 'pagerduty') {
  return httpInput.superRefine((target: unknown, context) => {
    if (!isObject(target)) return;
    const refuse = (name: string, message: string) => context.addIssue({ code: 'custom', path: [name], message });
    const { method, body } = target;
    if (method === 'GET' || method === 'HEAD')
      refuse('method', `must be one with a body: it carries what ${type} is told`);
    else if (body !== 'envelope')
      refuse('body', `must be "envelope" or absent: a channel of type "${type}" has its own`);
  }, ALWAYS);
}

function ofChannel(type: string) {
  return notAFieldOf(`a channel of type "${type}"`);
}
