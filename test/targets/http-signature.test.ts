import { createHmac } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { describe, expect, test } from 'vitest';
import { ATTACK } from '../support/runner/attack.ts';
import { attemptOf, httpTarget, never, receive } from './receivers.ts';
import { targetAt } from '../support/targets.ts';

const secretOf = (fill: number) => `whsec_${Buffer.alloc(32, fill).toString('base64')}`;
const SECRET = secretOf(1);
const NEXT = secretOf(2);
type Headers = Record<string, string>;

async function delivered(secret: string | string[] | null, rest: Parameters<typeof targetAt>[1] = {}) {
  const { url, arrivals } = await receive();
  await httpTarget().deliver(targetAt(url, { secret, ...rest }), attemptOf({ payload: '"zażółć"' }), never);
  const { body = '', headers = {} } = arrivals[0] ?? {};
  return { body, headers: headers as Headers };
}

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
