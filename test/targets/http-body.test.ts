import { createHmac } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { Webhook } from 'standardwebhooks';
import type { HttpTarget, OutcomeRules } from '../../src/core/schedules/schedule.ts';
import { secretOf } from '../support/signed.ts';
import { targetAt } from '../support/targets.ts';
import { attemptOf, httpTarget, never, receive } from './receivers.ts';
import { ATTACK } from '../support/runner/attack.ts';

async function sent(rest: Partial<HttpTarget<string>>, attempt: Parameters<typeof attemptOf>[0] = {}) {
  const { url, arrivals } = await receive();
  const outcome = await httpTarget().deliver(targetAt(url, rest), attemptOf(attempt), never);
  const { body = '', headers = {} } = arrivals[0] ?? {};
  return { outcome, body, headers: headers as Record<string, string>, arrivals };
}

test('a payload is the whole body, byte for byte, and its signature is about these bytes', async () => {
  const payload = '{"a":1e400,  "b":9007199254740993,\n"c":"\\u0000 €"}';
  const { body, headers } = await sent({ body: 'payload', secret: secretOf(1) }, { payload });
  expect(body).toBe(payload);
  expect(headers).toMatchObject({ 'content-type': 'application/json', 'ce-type': 'firelock.run' });
  expect(() => new Webhook(secretOf(1)).verify(body, headers)).not.toThrow();
});

test('without a payload the body is empty, and says nothing of its type, since servers refuse an empty body that claims to be JSON', async () => {
  const { body, headers } = await sent({ body: 'payload' });
  expect(body).toBe('');
  expect(headers).toMatchObject({ 'content-length': '0' });
  expect(headers).not.toHaveProperty('content-type');
});

test('a payload can have the type that a header says', async () => {
  const { headers } = await sent(
    { body: 'payload', headers: { 'Content-Type': 'application/cloudevents+json' } },
    { payload: '1' },
  );
  expect(headers['content-type']).toBe('application/cloudevents+json');
});

test('of a message of a notifier, the message itself is the envelope, or what a template makes of it', async () => {
  const payload = '{"notifier":"hook","alerts":[{"scheduleId":"a \\"b\\""}],"more":0}';
  const message = { trigger: 'notify', scheduleId: null, runName: null, payload } as const;
  const { body, headers } = await sent({ secret: secretOf(1) }, message);
  expect(body).toBe(payload);
  expect(headers['content-type']).toBe('application/json');
  expect(() => new Webhook(secretOf(1)).verify(body, headers)).not.toThrow();
  const template = '{"first": {{payload/alerts/0}}, "title": "{{payload/alerts/0/scheduleId}}"}';
  const own = await sent({ body: { template, contentType: 'application/json' } }, message);
  expect(own.body).toBe('{"first": {"scheduleId":"a \\"b\\""}, "title": "a \\"b\\""}');
});

test('a template is filled in, of its own type, and signed', async () => {
  const body = {
    template: 'run {{runName}}, {{payload/title}}: "ü"',
    contentType: 'text/plain; charset=utf-8',
  };
  const attempt = { payload: '{"title":"€ \\"x\\""}' };
  const found = await sent({ body, secret: secretOf(2) }, attempt);
  expect(found.body).toBe('run nightly@2026-11-20T09:00:00.000Z, € "x": "ü"');
  expect(found.headers).toMatchObject({
    'content-type': 'text/plain; charset=utf-8',
    'content-length': String(Buffer.byteLength(found.body)),
  });
});

test('a GET carries no body, whatever another program has stored', async () => {
  const { body, headers } = await sent({ method: 'GET', body: { template: 'x', contentType: 'text/plain' } });
  expect(body).toBe('');
  expect(headers).not.toHaveProperty('content-type');
});

test('a body of more than 1 MiB is not sent, and its run does not wait for another attempt', async () => {
  const body = { template: `[${Array(200).fill('{{payload}}').join(',')}]`, contentType: 'application/json' };
  const { outcome, arrivals } = await sent({ body }, { payload: JSON.stringify('x'.repeat(60_000)) });
  expect(outcome).toMatchObject({
    kind: 'rejected',
    statusCode: null,
    error: { kind: 'body', message: 'the body would be longer than 1 MiB' },
  });
  expect(arrivals).toEqual([]);
});

test('nor is an envelope that the results of many dependencies make as long', async () => {
  const result = { statusCode: 200, body: 'x'.repeat(4_000) };
  const dependenciesOf = (count: number) =>
    Array.from({ length: count }, (_, index) => ({
      ...{ runId: `run-${index}`, status: 'succeeded' as const, error: null, result },
    }));
  const long = await sent({}, { dependencies: dependenciesOf(300) });
  expect(long.outcome).toMatchObject({ kind: 'rejected', error: { kind: 'body' } });
  expect(long.arrivals).toEqual([]);
  expect((await sent({}, { dependencies: dependenciesOf(200) })).outcome).toMatchObject({ kind: 'accepted' });
});

test('rules judge the answer of the handoff', async () => {
  const outcome: OutcomeRules = {
    succeed: [],
    retry: [404],
    fail: [],
    require: { pointer: '/ok', json: 'true' },
    otherwise: 'fail',
  };
  const deliver = async (statusCode: number, body: string) => {
    const { url } = await receive((_, response) => response.writeHead(statusCode).end(body));
    return httpTarget().deliver(targetAt(url, { outcome }), attemptOf(), never);
  };
  expect(await deliver(200, '{"ok":true,"executionId":"e"}')).toMatchObject({
    kind: 'accepted',
    executionId: 'e',
  });
  expect(await deliver(200, '{"ok":false}')).toMatchObject({
    kind: 'rejected',
    body: '{"ok":false}',
    error: {
      message: 'the target answered 200, and its JSON at "/ok" is not what outcome.require.equals says',
    },
  });
  expect(await deliver(404, '')).toMatchObject({ kind: 'transient', statusCode: 404, byRule: true });
});

test('what is required must stand in the part of an answer that is read', async () => {
  const outcome = { succeed: [], retry: [], fail: [], require: { contains: 'END' }, otherwise: null };
  const deliver = async (body: string) => {
    const { url } = await receive((_, response) => response.end(body));
    return httpTarget().deliver(targetAt(url, { outcome }), attemptOf(), never);
  };
  expect(await deliver(`${'x'.repeat(60_000)}END`)).toMatchObject({ kind: 'accepted' });
  expect(await deliver(`${'x'.repeat(70_000)}END`)).toMatchObject({ kind: 'transient' });
});

test('silence is no answer that a rule could judge', async () => {
  const outcome = { succeed: ['2xx', '5xx'], retry: [], fail: [], require: null, otherwise: null };
  const { url } = await receive((_, response) => {
    response.writeHead(200, { 'content-length': 100 }).write('cut', () => response.destroy());
  });
  expect(await httpTarget().deliver(targetAt(url, { outcome }), attemptOf(), never)).toMatchObject({
    kind: 'unknown',
  });
});

const SECRET = secretOf(1);
const NEXT = secretOf(2);
type Headers = Record<string, string>;

const delivered = (secret: string | string[] | null, rest: Partial<HttpTarget<string>> = {}) =>
  sent({ secret, ...rest }, { payload: '"zażółć"' });

test('a receiver with the library of Standard Webhooks verifies the signature, and refuses a changed byte', async () => {
  const { body, headers } = await delivered(SECRET);
  const webhook = new Webhook(SECRET);
  expect(webhook.verify(body, headers)).toMatchObject({ trigger: 'schedule', payload: 'zażółć' });
  expect(() => webhook.verify(body.replace('"attempt":1', '"attempt":2'), headers)).toThrow();
  expect(() => webhook.verify(body, { ...headers, 'webhook-id': 'other' })).toThrow();
  const later = String(Number(headers['webhook-timestamp']) + 1);
  expect(() => webhook.verify(body, { ...headers, 'webhook-timestamp': later })).toThrow();
  expect(() => new Webhook(NEXT).verify(body, headers)).toThrow();
});

test('with two secrets, receivers of either verify it', async () => {
  const { body, headers } = await delivered([NEXT, SECRET]);
  expect(headers['webhook-signature']).toMatch(/^v1,\S{44} v1,\S{44}$/);
  for (const secret of [SECRET, NEXT]) expect(new Webhook(secret).verify(body, headers)).toBeTruthy();
});

test('without a secret nothing is signed', async () => {
  expect((await delivered(null)).headers).not.toHaveProperty('webhook-signature');
});

test.each(['Webhook-Signature', 'webhook_signature', 'CE-Id', 'X-Firelock-User'])(
  'a header %s that another program stored is not sent',
  async (name) => {
    const { body, headers } = await delivered(SECRET, { headers: { [name]: 'forged' } });
    expect(new Webhook(SECRET).verify(body, headers)).toBeTruthy();
    expect(JSON.stringify(headers)).not.toContain('forged');
  },
);

describe('a request without a body is signed with an empty one:', () => {
  const expectSigned = ({ headers }: { headers: Headers }) => {
    const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.`;
    const signature = createHmac('sha256', Buffer.alloc(32, 1)).update(signed).digest('base64');
    expect(headers['webhook-signature']).toBe(`v1,${signature}`);
  };

  test.each(['GET', 'HEAD'] as const)('a %s', async (method) => {
    expectSigned(await delivered(SECRET, { method }));
  });

  test('a lookup and a cancel call', async () => {
    const { url, arrivals } = await receive();
    const call = { url, method: 'POST' as const, headers: {} };
    const target = targetAt(`${url}/jobs`, { secret: SECRET, lookup: call, cancel: call });
    await httpTarget().lookup(target, attemptOf(), never);
    await httpTarget().cancel(target, attemptOf(), never);
    expect(arrivals).toHaveLength(2);
    for (const { headers } of arrivals) expectSigned({ headers: headers as Headers });
  });
});

test(
  'a lookup and a cancel call to another origin are made, and not signed: a server there could send the signature on',
  { tags: [ATTACK] },
  async () => {
    const { url, arrivals } = await receive();
    const { port } = new URL(url);
    const elsewhere = [
      `http://127.0.0.1:${Number(port) + 1}/`,
      `https://127.0.0.1:${port}/`,
      `http://localhost:${port}/`,
    ];
    for (const target of elsewhere) {
      const call = { url, method: 'POST' as const, headers: { 'x-own': 'of the call' } };
      const kind = httpTarget();
      await kind.lookup(targetAt(target, { secret: SECRET, lookup: call }), attemptOf(), never);
      await kind.cancel(targetAt(target, { secret: SECRET, cancel: { ...call } }), attemptOf(), never);
    }
    expect(arrivals).toHaveLength(2 * elsewhere.length);
    for (const { headers } of arrivals) {
      expect(headers).not.toHaveProperty('webhook-signature');
      expect(headers).toMatchObject({ 'webhook-id': attemptOf().runId, 'x-own': 'of the call' });
    }
  },
);

test.each(['whsec_x', 'plain', `whsec_${Buffer.alloc(23).toString('base64')}`])(
  'with a secret that another program stored (%s) nothing is sent, and the error does not contain it',
  async (secret) => {
    const { url, arrivals } = await receive();
    const outcome = await httpTarget().deliver(targetAt(url, { secret }), attemptOf(), never);
    expect(outcome).toMatchObject({ kind: 'transient', senderStopped: false });
    expect(JSON.stringify(outcome)).not.toContain(secret);
    expect(arrivals).toEqual([]);
  },
);

test('a value that templates make invalid is not sent, and the error does not contain it', async () => {
  const { url, arrivals } = await receive();
  const target = targetAt(url, { headers: { 'x-a': 'canary {{scheduleId}}' } });
  const outcome = await httpTarget().deliver(target, attemptOf({ scheduleId: 'a\r\nx-b: c' }), never);
  expect(outcome).toMatchObject({ kind: 'transient' });
  expect(JSON.stringify(outcome)).not.toContain('canary');
  expect(arrivals).toEqual([]);
});
