import type { Connection } from '../../../../clients/typescript/src/generated/types.gen.ts';
import { HttpFields } from '../../parts/endpoint/http-fields.tsx';
import { KEPT } from '../../parts/endpoint/http-part.ts';
import type { Sent } from '../../parts/endpoint/sent.ts';
import { AreaField, type FormPart, TextField } from '../../parts/forms/draft-fields.tsx';
import { Field } from '../../parts/forms/field.tsx';
import { Segments } from '../../parts/forms/segments.tsx';
import { type Channel, type NotifierDraft, withChannel } from './notifier-draft.ts';

const CHANNELS = [
  ['webhook', 'A URL'],
  ['slack', 'A chat'],
  ['pagerduty', 'PagerDuty'],
  ['email', 'Mail'],
] as const;
const HINTS: Record<Channel['type'], string> = {
  webhook: 'A message is JSON, or what your text makes of it.',
  slack: 'By an incoming webhook of Slack, Mattermost, Rocket.Chat or Discord (its address and /slack).',
  pagerduty: 'An incident for each alert, which its end resolves.',
  email: 'By the mail server of FIRELOCK_SMTP_URL.',
};
const MESSAGE = ['envelope', 'the message, as JSON'] as const;
/** The payload of a message is the message: it is offered where it stands already. */
const PAYLOAD = ['payload', 'the payload: the message, as JSON'] as const;
const TEXT = ['template', 'a text of my own'] as const;

/** What every part of the form is given. */
export type Part = FormPart<NotifierDraft>;

interface Props {
  part: Part;
  /** Of a message: the request or the mail. */
  preview: { sent: Sent; connections: readonly Connection[] } | { subject: string; text: string };
}

/** Where its messages go. */
export function ChannelFields({ part, preview }: Props) {
  const { draft, faults, change } = part;
  const { channel } = draft;
  return (
    <>
      <Field label="Where" path="/channel/type" faults={faults} hint={HINTS[channel]}>
        {(props) => (
          <div {...props}>
            <Segments
              label="Channel"
              value={channel}
              options={CHANNELS}
              onChange={(chosen) => change(withChannel(draft, chosen))}
            />
          </div>
        )}
      </Field>
      {channel === 'pagerduty' && (
        <TextField
          {...{ part, path: '/channel/routingKey', name: 'routingKey', isMono: true }}
          label="Routing key"
          hint={`Of an integration of the Events API v2. ${KEPT}`}
        />
      )}
      {'sent' in preview ? (
        <HttpFields {...{ part, ...preview, bodies: bodiesOf(draft) }} />
      ) : (
        <MailFields {...{ part, mail: preview }} />
      )}
    </>
  );
}

/** The other channels have a form of their own. */
function bodiesOf({ channel, bodyKind }: NotifierDraft) {
  if (channel !== 'webhook') return [];
  return bodyKind === 'payload' ? [MESSAGE, PAYLOAD, TEXT] : [MESSAGE, TEXT];
}

function MailFields({ part, mail }: { part: Part; mail: { subject: string; text: string } }) {
  return (
    <>
      <AreaField {...{ part, path: '/channel/to', name: 'to', rows: 3 }} label="Addresses" hint="One a line." />
      <section class="field" aria-labelledby="the-mail">
        <h3 id="the-mail">What is sent</h3>
        <pre class="user sent" aria-label="The mail" tabIndex={0}>
          {`Subject: ${mail.subject}\n\n${mail.text}`}
        </pre>
      </section>
    </>
  );
}
