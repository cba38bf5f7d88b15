import { Webhook } from 'standardwebhooks';
import { describe, expect, test } from 'vitest';
import { SignatureError, verifySignature } from '../../clients/typescript/src/receiver/signature.ts';
import { secretOf } from '../support/signed.ts';

const [ONE, TWO, OTHER] = [secretOf(1), secretOf(2), secretOf(3)];
const NOW = Date.UTC(2030, 0, 1);
const BODY = '{"payload":"żółć"}';

interface Changes {
  secret?: string;
  at?: number;
  headers?: Record<string, string | null>;
  body?: string | Uint8Array;
  secrets?: string | string[];
}

/** What the library of Standard Webhooks has signed, with changes on the way. */
function verify({ secret = ONE, at = NOW, headers = {}, body = BODY, secrets = ONE }: Changes = {}) {
  const sent: Record<string, string | null> = {
    'webhook-id': 'run',
    'webhook-timestamp': String(at / 1000),
    'webhook-signature': new Webhook(secret).sign('run', new Date(at), BODY),
    ...headers,
  };
  return verifySignature(secrets, { header: (name) => sent[name] ?? null, body }, { now: () => NOW });
}

const refused = (what: RegExp): unknown =>
  expect.objectContaining({ name: 'SignatureError', message: expect.stringMatching(what) as string });

test('what the library of Standard Webhooks signs is verified, as text or as bytes', async () => {
  await verify();
  await verify({ body: Buffer.from(BODY) });
});

test('each of several secrets is enough, and so is each of several signatures', async () => {
  await verify({ secret: TWO, secrets: [ONE, TWO] });
  const right = new Webhook(ONE).sign('run', new Date(NOW), BODY);
  const wrong = new Webhook(OTHER).sign('run', new Date(NOW), BODY);
  await verify({ headers: { 'webhook-signature': `v1a,AAAA ${wrong} ${right}` } });
  await expect(verify({ headers: { 'webhook-signature': `v2,${right.slice(3)}` } })).rejects.toThrow(
    SignatureError,
  );
});

test('300 s before and after are signed in time, a second more is not', async () => {
  await verify({ at: NOW - 300_000 });
  await verify({ at: NOW + 300_000 });
  await expect(verify({ at: NOW - 301_000 })).rejects.toEqual(refused(/301 s ago/));
  await expect(verify({ at: NOW + 301_000 })).rejects.toEqual(refused(/301 s to come/));
});

test.each<[string, Changes, RegExp]>([
  ['another secret', { secret: OTHER }, /no secret/],
  ['a changed body', { body: `${BODY} ` }, /no secret/],
  ['another id', { headers: { 'webhook-id': 'other' } }, /no secret/],
  ['another time', { headers: { 'webhook-timestamp': String(NOW / 1000 + 1) } }, /no secret/],
  ['no signature', { headers: { 'webhook-signature': null } }, /not signed/],
  ['no time', { headers: { 'webhook-timestamp': null } }, /not signed/],
  ['a time that is no number', { headers: { 'webhook-timestamp': '1e3' } }, /no number/],
  ['half a signature', { headers: { 'webhook-signature': 'v1,AAAA' } }, /no secret/],
  ['an empty signature', { headers: { 'webhook-signature': '' } }, /no secret/],
])('%s is refused', async (_, changes, what) => {
  await expect(verify(changes)).rejects.toEqual(refused(what));
});

describe('a secret that is none', () => {
  test.each(['', 'plain', 'whsec_', 'whsec_x', `whsec_${Buffer.alloc(23).toString('base64')}`])(
    '%j is an error of the program, which does not tell it',
    async (secret) => {
      const error: unknown = await verify({ secrets: secret }).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(TypeError);
      expect(String(error)).toBe('TypeError: a secret is "whsec_" and base64 of 24 to 64 bytes');
    },
  );

  test('none at all would let everybody in', async () => {
    await expect(verify({ secrets: [] })).rejects.toThrow('there is no secret');
  });
});
