import { Webhook } from 'standardwebhooks';
import { describe, expect, test } from 'vitest';
import { verifySignature } from '../../clients/typescript/src/receiver/signature.ts';
import { secretOf } from '../support/signed.ts';

const [ONE, OTHER] = [secretOf(1), secretOf(3)];
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

test('300 s before and after are signed in time, a second more is not', async () => {
  await verify({ at: NOW - 300_000 });
  await verify({ at: NOW + 300_000 });
  await expect(verify({ at: NOW - 301_000 })).rejects.toEqual(refused(/301 s ago/));
  await expect(verify({ at: NOW + 301_000 })).rejects.toEqual(refused(/301 s to come/));
});

// Which signatures hold: clients/vectors.json, for all languages.
test.each<[string, Changes, RegExp]>([
  ['another secret', { secret: OTHER }, /no secret/],
  ['no signature', { headers: { 'webhook-signature': null } }, /not signed/],
  ['a time that is no number', { headers: { 'webhook-timestamp': '1e3' } }, /no number/],
])('%s is named', async (_, changes, what) => {
  await expect(verify(changes)).rejects.toEqual(refused(what));
});

describe('a secret that is none', () => {
  test('is an error of the program, which does not tell it', async () => {
    const error: unknown = await verify({ secrets: 'plain' }).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(TypeError);
    expect(String(error)).toBe('TypeError: a secret is "whsec_" and base64 of 24 to 64 bytes');
  });

  test('none at all would let everybody in', async () => {
    await expect(verify({ secrets: [] })).rejects.toThrow('there is no secret');
  });
});
