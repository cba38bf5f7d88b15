import { describe, expect, it, test } from 'vitest';
import { type Message, type ToldAlert, ALERT_KINDS, MESSAGE_EVENTS } from '../../../src/core/alerts/alert.ts';
import { type ChannelType, CHANNEL_TYPES, payloadOf } from '../../../src/core/alerts/texts/channels.ts';
import { ATTACK } from '../../support/runner/attack.ts';
import { mailAddress, mayMailTo, parseMailDomains } from '../../../src/core/alerts/texts/mail.ts';

const AT = Date.UTC(2026, 10, 20, 9, 5);
const URL = 'https://cron.example/schedules/billing.invoices';

function alertOf(more: Partial<ToldAlert> = {}): ToldAlert {
  return {
    ...{ id: '01990000-0000-7000-8000-000000000001', scheduleId: 'billing.invoices', kind: 'failed' },
    ...{ since: Date.UTC(2026, 10, 20, 9), until: null, runId: '01990000-0000-7000-8000-00000000000a' },
    ...{ status: 'failed', error: 'the target answered 503', labels: { team: 'billing' }, url: URL },
    overBy: null,
    ...more,
  };
}

function messageOf(more: Partial<Message> = {}): Message {
  const usual = { alerts: [alertOf()], more: 0, fallbackFor: null };
  return { notifier: 'on-call', event: 'opened', at: AT, ...usual, ...more };
}

const parsed = (channel: ChannelType, message: Message) =>
  JSON.parse(payloadOf(channel, message)) as Record<string, unknown>;
const slack = (message: Message) => parsed('slack', message)['text'] as string;

test('a webhook gets the message, field by field', () => {
  expect(parsed('webhook', messageOf({ more: 3 }))).toEqual({
    ...{ notifier: 'on-call', event: 'opened', at: '2026-11-20T09:05:00.000Z', more: 3 },
    alerts: [
      {
        ...{ scheduleId: 'billing.invoices', kind: 'failed', since: '2026-11-20T09:00:00.000Z', until: null },
        ...{
          runId: '01990000-0000-7000-8000-00000000000a',
          status: 'failed',
          error: 'the target answered 503',
        },
        ...{ labels: { team: 'billing' }, url: URL },
      },
    ],
  });
});

describe('a person reads', () => {
  test('what, since when, the error, what it means, and where to look', () => {
    expect(slack(messageOf()).split('\n')).toEqual([
      '*billing.invoices failed*',
      'since 2026-11-20 09:00:00 UTC (for 5 min)',
      'Error: `the target answered 503`',
      'The work of this run is not done, and firelock does not try it again. The next fire comes as planned.',
      URL,
    ]);
    const mail = parsed('email', messageOf());
    expect(mail['subject']).toBe('[firelock] billing.invoices failed');
    expect(mail['text']).toContain('Run: 01990000-0000-7000-8000-00000000000a\n');
  });

  test('that it is over, and how long it took', () => {
    const recovered = messageOf({
      event: 'recovered',
      alerts: [alertOf({ kind: 'late', until: AT + 2 * 3_600_000, error: null, status: null, url: null })],
    });
    expect(slack(recovered).split('\n')).toEqual([
      '*billing.invoices succeeds again*',
      'from 2026-11-20 09:00:00 UTC to 2026-11-20 11:05:00 UTC (2 h 5 min)',
    ]);
  });

  test('that it is still so', () => {
    const at = AT + 3 * 86_400_000;
    expect(slack(messageOf({ event: 'reminder', at }))).toMatch(
      /^\*Still: billing.invoices failed\*\nsince .* \(for 3 d\)\n/,
    );
  });

  test('several in a list, and how many more there are', () => {
    const alerts = ['a', 'b'].map((scheduleId) => alertOf({ scheduleId, url: null }));
    expect(slack(messageOf({ alerts, more: 40 })).split('\n')).toEqual([
      '*42 things broke*',
      '• *a failed*, since 2026-11-20 09:00:00 UTC (for 5 min): `the target answered 503`',
      '• *b failed*, since 2026-11-20 09:00:00 UTC (for 5 min): `the target answered 503`',
      '… and 40 more',
    ]);
    expect(parsed('email', messageOf({ alerts, more: 40 }))['subject']).toBe('[firelock] 42 things broke: a, b');
  });

  test('that another notifier could not deliver it', () => {
    for (const channel of CHANNEL_TYPES) {
      const isForPrograms = channel === 'webhook' || channel === 'pagerduty';
      const said = isForPrograms ? '"fallbackFor":"first"' : 'The notifier first could not deliver this.';
      expect(payloadOf(channel, messageOf({ fallbackFor: 'first' }))).toContain(said);
      expect(payloadOf(channel, messageOf())).not.toMatch(/fallbackFor|deliver this/);
    }
  });

  test('a test of a notifier as one', () => {
    const message = messageOf({ event: 'test', alerts: [] });
    expect(slack(message)).toBe('*Test of the notifier on-call: it works*');
    expect(parsed('email', message)['subject']).toBe('[firelock] Test of the notifier on-call: it works');
    expect(parsed('webhook', message)).toMatchObject({ event: 'test', alerts: [], more: 0 });
  });
});

describe('PagerDuty', () => {
  test('gets an incident for each episode, which its end resolves, and no routing key', () => {
    const event = parsed('pagerduty', messageOf());
    expect(event).toMatchObject({
      ...{ event_action: 'trigger', dedup_key: alertOf().id, links: [{ href: URL }] },
      payload: {
        ...{ summary: 'billing.invoices failed: the target answered 503', source: 'billing.invoices' },
        ...{ severity: 'error', timestamp: '2026-11-20T09:00:00.000Z', class: 'failed' },
        custom_details: { labels: { team: 'billing' }, runId: alertOf().runId, notifier: 'on-call' },
      },
    });
    expect(event).not.toHaveProperty('routing_key');
    const again = parsed('pagerduty', messageOf({ event: 'reminder' }));
    expect([again['event_action'], again['dedup_key']]).toEqual(['trigger', alertOf().id]);
    expect(parsed('pagerduty', messageOf({ event: 'recovered' }))).toMatchObject({
      ...{ event_action: 'resolve', dedup_key: alertOf().id },
    });
    expect(parsed('pagerduty', messageOf({ alerts: [alertOf({ url: null })] }))).toMatchObject({ links: [] });
  });
});

describe('whatever an error says', () => {
  const HOSTILE = [
    '<!channel> <https://evil.example|your bank> &lt; @everyone @all',
    'one\r\ntwo\u2028three\u0007',
    '\ud83d\ude00'.repeat(3_000),
    `${'\ud83d\ude00'.repeat(200)}\ud800`,
    '&'.repeat(5_000),
    '"}{{payload}}\\',
    '[Sign in](https://evil.example) ![](http://evil.example/p.png) www.evil.example evil.example/x mailto:a@b.example',
    '`code` *bold* ~town-square #general \u202eelpmaxe.live//:sptth\u2069 \u200e',
  ];

  const messages = MESSAGE_EVENTS.flatMap((event) =>
    HOSTILE.flatMap((error) =>
      ALERT_KINDS.flatMap((kind) =>
        [1, 2, 20].map((count) =>
          messageOf({
            ...{ event, more: count === 20 ? 1_980 : 0 },
            alerts: Array.from({ length: count }, () => alertOf({ kind, error, status: 'unknown' })),
          }),
        ),
      ),
    ),
  );

  test('a chat calls nobody, has no links of others, and takes the text', { tags: [ATTACK] }, () => {
    for (const message of messages) {
      const text = slack(message);
      expect(text.length).toBeLessThanOrEqual(2_000);
      expect(text).not.toMatch(/[<>]|@[a-z]|&(?!amp;|lt;|gt;)/);
      expect(text.replaceAll(URL, '')).not.toMatch(
        /:\/\/|\]\(|evil\.example|mailto:a|[\u200e\u202a-\u202e\u2066-\u2069]/,
      );
      // The error is code: none of them reads markup in it, and it ends where it should.
      for (const line of text.split('\n')) expect(line.split('`').length % 2).toBe(1);
      expect(text.isWellFormed()).toBe(true);
      const told = text.split('\n').filter((line) => line.startsWith('• ')).length;
      const rest = Number(/… and (\d+) more$/.exec(text)?.[1] ?? 0);
      if (message.alerts.length > 1 && message.event !== 'test')
        expect(told + rest).toBe(message.alerts.length + message.more);
    }
  });

  test(
    'a subject is one line, and the summary of an incident no longer than PagerDuty takes',
    { tags: [ATTACK] },
    () => {
      for (const message of messages) {
        const { subject } = parsed('email', message) as { subject: string };
        expect(subject).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}]/u);
        expect(Array.from(subject).length).toBeLessThanOrEqual(150);
        const { payload } = parsed('pagerduty', message) as { payload: { summary: string } };
        expect(Array.from(payload.summary).length).toBeLessThanOrEqual(1_024);
        expect(payload.summary).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}]/u);
      }
    },
  );

  test('Slack itself gets it as plain text, and only links to the dashboard', { tags: [ATTACK] }, () => {
    for (const message of messages) {
      const { blocks } = JSON.parse(payloadOf('slack', message, true)) as {
        blocks: { text: { type: string; text: string } }[];
      };
      const [plain, links] = blocks.map(({ text }) => text);
      expect(plain?.type).toBe('plain_text');
      expect(plain?.text.length).toBeLessThanOrEqual(3_000);
      expect(links?.text.replaceAll(`<${URL}|billing.invoices>`, '')).toMatch(/^[ ·]*$/);
    }
    expect(parsed('slack', messageOf())).not.toHaveProperty('blocks');
  });

  test('no mail has marks that turn its text around', { tags: [ATTACK] }, () => {
    for (const message of messages)
      expect(JSON.stringify(parsed('email', message))).not.toMatch(/[\u200e\u202a-\u202e\u2066-\u2069]/);
  });

  test('every channel makes JSON of it', () => {
    for (const message of messages)
      for (const channel of CHANNEL_TYPES) expect(parsed(channel, message)).toBeTypeOf('object');
  });
});

it.each([
  ['ops@example.com', 'ops@example.com'],
  ["o'ops+cron/1@Example.COM", "o'ops+cron/1@example.com"],
  ['ops@b\u00fccher.example', 'ops@xn--bcher-kva.example'],
  ['ops@localhost', 'ops@localhost'],
])('an address is written to in ASCII: %s', (given, written) => {
  expect(mailAddress(given)).toBe(written);
});

it.each([
  ['\u00f6ps@example.com'],
  ['ops@exa\u00a0mple.com'],
  ['ops@exa\u200bmple.com'],
  ['ops@exa\u00admple.com'],
  ['ops@\u202eexample.com'],
  ['ops@example..com'],
  ['ops@-example.com'],
  ['ops@example.com\u3000'],
  ['ops'],
  ['@example.com'],
  ['a b@example.com'],
])('is no address: %j', (given) => {
  expect(mailAddress(given)).toBeNull();
});

it('mail goes to the domains that are named, and below those with a dot; without any, everywhere', () => {
  const [domains, faults] = parseMailDomains('Example.com, .corp.example,b\u00fccher.example');
  expect(faults).toEqual([]);
  const goes = (address: string) => mayMailTo(domains, address);
  expect(['a@example.com', 'a@x.corp.example', 'a@y.x.corp.example', 'a@xn--bcher-kva.example'].every(goes)).toBe(true);
  expect(['a@x.example.com', 'a@corp.example', 'a@notexample.com', 'a@evilcorp.example'].some(goes)).toBe(false);
  expect(mayMailTo([], 'a@anywhere.example')).toBe(true);
  expect(parseMailDomains('example.com,a b,')[1].map(({ entry }) => entry)).toEqual(['a b', '']);
});
