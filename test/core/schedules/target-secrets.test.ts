import { describe, expect, test } from 'vitest';
import type { BodyTemplate, HttpTarget } from '../../../src/core/schedules/schedule.ts';
import type { SecretText } from '../../../src/core/secrets/key-ring.ts';
import type { Credential, SecretFile } from '../../../src/core/secrets/sealed-values.ts';
import {
  filesNamedBy,
  keyIdsIn,
  openTarget,
  resealTarget,
  sameSecrets,
  sealTarget,
} from '../../../src/core/schedules/target-secrets.ts';
import { ATTACK } from '../../support/runner/attack.ts';
import { SECRETS, ringOf } from '../../support/secrets.ts';
import { targetAt } from '../../support/targets.ts';

const GIVEN: HttpTarget<string> = targetAt('https://a.example/x?{{runId}}', {
  headers: { 'X-Key': 'k', Accept: 'a' },
  secret: ['one', 'two'],
  body: { template: '"{{secret/Key}}"', contentType: 'application/json', secrets: { Key: 'b', key: 'B' } },
  lookup: { url: 'https://b.example/', method: 'GET', headers: { 'X-Key': 'l' } },
  cancel: { url: 'https://c.example/', method: 'POST', headers: { 'X-Key': 'c' } },
});
const sealed = (given: HttpTarget = GIVEN, before: HttpTarget | null = null, ring = SECRETS) =>
  sealTarget(given, { ring, uid: 'u', before }).target;
const NEWER = ringOf(`newer:${Buffer.alloc(32, 9).toString('base64')},test:${Buffer.alloc(32, 7).toString('base64')}`);

test('every header value and secret is encrypted, and nothing else', () => {
  const stored = sealed();
  expect(keyIdsIn(stored)).toEqual(Array(8).fill('test'));
  expect(stored).toMatchObject({ url: GIVEN.url, method: 'POST', lookup: { method: 'GET' } });
  expect(openTarget(SECRETS, 'u', stored)).toEqual(GIVEN);
});

test('a target without secret values is sent as the object that it is, which many schedules may share', () => {
  const bare = { ...GIVEN, headers: {}, secret: null, lookup: null, cancel: null, body: 'payload' as const };
  expect(openTarget(SECRETS, 'u', bare)).toBe(bare);
  expect(openTarget(SECRETS, 'u', sealed())).not.toBe(GIVEN);
});

describe('an encrypted value', () => {
  const stored = sealed();
  const key = (stored.headers['X-Key'] ?? '') as SecretText;
  const body = stored.body as BodyTemplate<SecretText>;
  const secretsOfBody = body.secrets ?? {};
  const inBody = (secrets: Record<string, SecretText>) => ({ ...stored, body: { ...body, secrets } });
  const opens =
    (target: HttpTarget, uid = 'u') =>
    () =>
      openTarget(SECRETS, uid, target);

  test.each<[string, HttpTarget, string?]>([
    ['of another schedule', stored, 'v'],
    ['under another URL’s origin', { ...stored, url: 'https://evil.example/' }],
    ['under another header', { ...stored, headers: { Authorization: key } }],
    ['in the lookup', { ...stored, lookup: { url: stored.url, method: 'GET', headers: { 'X-Key': key } } }],
    ['as a secret', { ...stored, secret: key }],
    ['in the body', inBody({ Key: key })],
    ['of the body under another name', inBody({ other: secretsOfBody['Key'] ?? '' })],
    ['of the body in another letter case', inBody({ key: secretsOfBody['Key'] ?? '' })],
  ])('does not decrypt %s', (_name, target, uid) => {
    expect(opens(target, uid)).toThrow(/^\/target\/.* cannot be decrypted with the key "test"/);
  });

  test('decrypts in another letter case, under another path of the same origin, and in the other place of two secrets', () => {
    const moved = {
      ...stored,
      url: 'https://A.example:443/y',
      headers: { 'x-KEY': key },
      secret: [...(stored.secret as SecretText[])].reverse(),
    };
    expect(opens(moved)()).toMatchObject({ headers: { 'x-KEY': 'k' }, secret: ['two', 'one'] });
  });
});

describe('a file in the place of a value', () => {
  const file = { file: 'chat-key', seal: null };
  const inBody = (value: Credential) =>
    ({ ...GIVEN, body: { template: '', contentType: 'text/plain', secrets: { Key: value } } }) as HttpTarget;
  const stored = sealed(inBody(file));
  const fileIn = ({ body }: HttpTarget) => (body as BodyTemplate<SecretFile>).secrets?.['Key'] ?? file;
  const opens = (target: HttpTarget, read = (name: string) => `content of ${name}\n`) =>
    openTarget(SECRETS, 'u', target, read);

  test('is opened to its content without line breaks at the end; without its content its name stands for it', () => {
    expect(filesNamedBy(stored)).toEqual(['chat-key']);
    expect(opens(stored)).toMatchObject({ body: { secrets: { Key: 'content of chat-key' } } });
    expect(openTarget(SECRETS, 'u', stored)).toMatchObject({
      body: { secrets: { Key: '{"file":"chat-key"}' } },
    });
    expect(() => opens(stored, () => '\n')).toThrow(
      '/target/body/secrets/Key cannot be taken from the file "chat-key"',
    );
  });

  test('stays as it is when it is sent again, and is proven anew by a newer key', () => {
    expect(sealed(inBody(file), stored)).toEqual(stored);
    const anew = resealTarget(NEWER, 'u', stored);
    expect(fileIn(anew)).toMatchObject({ file: 'chat-key', seal: { keyId: 'newer' } });
    expect(keyIdsIn(anew)).toContain('newer');
    expect(openTarget(NEWER, 'u', anew, () => 'x')).toMatchObject({ body: { secrets: { Key: 'x' } } });
  });

  test(
    'is proven for its place, its origin and its name: none of them can be changed in the database',
    { tags: [ATTACK] },
    () => {
      for (const [target, reason] of [
        [{ ...stored, url: 'https://evil.example/' }, /cannot be decrypted/],
        [inBody({ file: 'db-password', seal: fileIn(stored).seal }), /not the one that was chosen/],
        [inBody({ file: 'db-password', seal: null }), /without a proof/],
        [{ ...stored, headers: { 'X-Key': fileIn(stored) } }, /cannot be decrypted/],
        [inBody(fileIn(stored).seal ?? ''), /cannot be decrypted/],
      ] as const)
        expect(() => opens(target)).toThrow(reason);
    },
  );
});

test('the same texts sent again stay as they are stored, also if the key is no longer the first', () => {
  const stored = sealed();
  expect(sealed(GIVEN, stored)).toEqual(stored);
  expect(sealed(GIVEN, stored, NEWER)).toEqual(stored);
  const changed = sealed({ ...GIVEN, headers: { ...GIVEN.headers, 'X-Key': 'other' } }, stored);
  expect(changed.headers['X-Key']).not.toEqual(stored.headers['X-Key']);
  expect(changed).toEqual({ ...stored, headers: changed.headers });
});

test('a value under an older key is encrypted anew by the first; an unreadable one stays', () => {
  const lost = sealed(GIVEN, null, ringOf(`lost:${Buffer.alloc(32, 3).toString('base64')}`));
  const mixed = { ...sealed(), cancel: lost.cancel };
  const anew = resealTarget(NEWER, 'u', mixed) as HttpTarget;
  expect(keyIdsIn(anew)).toEqual([...Array.from({ length: 7 }, () => 'newer'), 'lost']);
  expect(openTarget(NEWER, 'u', { ...anew, cancel: null })).toEqual({ ...GIVEN, cancel: null });
  expect(resealTarget(NEWER, 'u', anew)).toEqual(anew);
});

test('without a key, the places that cannot be encrypted are named', () => {
  const { unsealed } = sealTarget(GIVEN, { ring: ringless(), uid: 'u', before: null });
  expect(unsealed.map(({ steps }) => steps.join('/'))).toEqual(
    (
      'headers/X-Key headers/Accept body/secrets/Key body/secrets/key secret/0 secret/1 ' +
      'lookup/headers/X-Key cancel/headers/X-Key'
    ).split(' '),
  );
  expect(sealTarget(sealed(), { ring: ringless(), uid: 'u', before: null }).unsealed).toEqual([]);
});

test('targets of two uids are compared by the content of their values', () => {
  const b = (target: HttpTarget) => ({ uid: 'w', target });
  const a = { uid: 'u', target: sealed() };
  expect(sameSecrets(SECRETS, a, b(GIVEN))).toBe(true);
  expect(sameSecrets(SECRETS, a, b({ ...GIVEN, secret: ['one', 'three'] }))).toBe(false);
  expect(sameSecrets(SECRETS, a, b({ ...GIVEN, headers: {} }))).toBe(false);
  // They can no longer be compared.
  expect(sameSecrets(ringless(), a, b(GIVEN))).toBe(true);
});

function ringless() {
  return { ...ringOf(`none:${Buffer.alloc(32, 1).toString('base64')}`), sealsWith: null };
}
