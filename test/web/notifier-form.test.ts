import { describe, expect, it } from 'vitest';
import type { AnsweredHttpTarget, Notifier } from '../../clients/typescript/src/generated/types.gen.ts';
import { stringifyJson } from '../../web/src/api/json.ts';
import { httpDraftOf } from '../../web/src/parts/endpoint/http-draft.ts';
import {
  EMPTY,
  type NotifierDraft,
  bodyOf,
  draftOf,
  faultsOf,
  inForm,
  withChannel,
} from '../../web/src/pages/notifiers/notifier-draft.ts';
import { mailOf, sentOf } from '../../web/src/pages/notifiers/sample-message.ts';
import { targetAt } from '../support/targets.ts';

const AT = Date.UTC(2026, 10, 20, 9);
const TARGET = targetAt('https://a/x') as AnsweredHttpTarget;
const TEXT = { template: '{"t": "{{payload/alerts/0/scheduleId}}"}', contentType: 'application/json' };

/** As the API answers it. */
function stored(changes: Partial<Notifier>): Notifier {
  return {
    ...{
      id: 'team',
      description: null,
      enabled: true,
      on: ['failed', 'late'],
      remindSeconds: null,
      afterFailures: 1,
    },
    ...{ filter: { ids: [], label: [] }, channel: { type: 'webhook', target: TARGET }, fallback: null },
    ...{ version: 2, updatedAt: '2026-11-20T09:00:00.000Z', ...changes },
  };
}

const sent = (draft: NotifierDraft, from: Notifier | null = null) =>
  JSON.parse(stringifyJson(bodyOf(draft, from))) as Record<string, unknown>;

it.each<[string, Partial<Notifier>]>([
  ['a webhook', {}],
  [
    'one with a text of its own, a header and two secrets',
    {
      channel: {
        type: 'webhook',
        target: { ...TARGET, body: TEXT, headers: { 'x-a': '***' }, secret: ['***', '***'] },
      },
    },
  ],
  ['one that takes the payload', { channel: { type: 'webhook', target: { ...TARGET, body: 'payload' } } }],
  ['a chat', { channel: { type: 'slack', target: TARGET }, enabled: false }],
  ['PagerDuty', { channel: { type: 'pagerduty', target: TARGET, routingKey: '***' }, fallback: 'mail' }],
  ['mail', { channel: { type: 'email', to: ['a@b', 'c@d'] }, remindSeconds: 60, afterFailures: 3 }],
  ['a filter', { filter: { ids: ['billing.*', 'a'], label: ['team:the night shift', 'a:b:c'] } }],
])('an untouched form sends back what it was made from: %s', (_name, changes) => {
  const notifier = stored(changes);
  const { enabled, on, filter, channel, remindSeconds, afterFailures, fallback } = notifier;
  expect(sent(draftOf(notifier), notifier)).toEqual({
    enabled,
    on,
    filter,
    channel,
    remindSeconds,
    afterFailures,
    fallback,
  });
});

describe('another channel', () => {
  it('keeps what was typed, and sends no body that it would refuse', () => {
    const from = stored({ channel: { type: 'webhook', target: { ...TARGET, body: TEXT } } });
    const draft: NotifierDraft = { ...draftOf(from), channel: 'slack' };
    expect(sent(draft, from)['channel']).toEqual({ type: 'slack', target: TARGET });
    expect(sent({ ...draft, channel: 'webhook' }, from)['channel']).toEqual(from.channel);
  });

  it('knows where PagerDuty takes events, until it is left', () => {
    const draft = { ...EMPTY, ...withChannel(EMPTY, 'pagerduty') };
    expect(draft.url).toBe('https://events.pagerduty.com/v2/enqueue');
    expect(withChannel(draft, 'slack').url).toBe('');
    expect(withChannel({ ...EMPTY, url: 'https://mine' }, 'pagerduty').url).toBe('https://mine');
  });
});

it('what is no number goes as it was typed, for the daemon to refuse; what is refused stands beside the fields', () => {
  expect(sent({ ...EMPTY, remindSeconds: 'daily' })['remindSeconds']).toBe('daily');
  expect(
    faultsOf({
      ...EMPTY,
      headers: [
        ['a', '1'],
        ['a', '2'],
      ],
    }),
  ).toEqual([{ path: '/target/headers', message: 'a is there twice' }]);
  const paths = ['/channel/target/url', '/channel/to', '/on'];
  expect(paths.map((path) => inForm({ path, message: '' }).path)).toEqual(['/target/url', '/channel/to', '/on']);
});

describe('what is sent', () => {
  const draft: NotifierDraft = { ...EMPTY, ...httpDraftOf(TARGET) };
  const shown = (changes: Partial<NotifierDraft>) => sentOf({ ...draft, ...changes }, 'team', AT, null);

  it('is the message, or what the text makes of it', () => {
    expect(JSON.parse(shown({}).body ?? '')).toMatchObject({ notifier: 'team', event: 'opened' });
    const { template, contentType } = TEXT;
    expect(shown({ bodyKind: 'template', template, contentType }).body).toBe('{"t": "billing.invoices"}');
  });

  it('is the text of a chat, whatever was typed for a webhook', () => {
    const { body } = shown({ channel: 'slack', bodyKind: 'template', template: 'x' });
    expect(JSON.parse(body ?? '')).toEqual({
      text: expect.stringContaining('billing.invoices failed') as string,
    });
  });

  it('is an event of PagerDuty, whose routing key is not shown', () => {
    const { body } = shown({ channel: 'pagerduty', routingKey: 'R0' });
    expect(JSON.parse(body ?? '')).toMatchObject({ routing_key: '***', event_action: 'trigger' });
  });

  it('is a mail about the first kind that it tells of', () => {
    const mail = mailOf({ ...draft, channel: 'email', on: ['paused'] }, 'team', AT);
    expect(mail.subject).toBe('[firelock] billing.invoices was paused by firelock');
  });
});
