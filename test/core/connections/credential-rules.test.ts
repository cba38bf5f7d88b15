import { generateKeyPairSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  certificatesFault,
  keyOfAnotherFault,
  privateKeyFault,
  secretNameFault,
} from '../../../src/core/connections/credential-rules.ts';
import { ATTACK } from '../../support/runner/attack.ts';

test.each(['token', 'github-token.pem', 'billing/token', '..data', '..data/token', 'a'.repeat(255)])(
  'a secret file may have the name %.20s',
  (name) => {
    expect(secretNameFault(name)).toBeNull();
  },
);

describe('the name of a secret file', { tags: [ATTACK] }, () => {
  test.each(['..', '.', '../token', 'a/../../token', 'a/.', '/etc/passwd', '', 'a//b', 'a/', 'a\\b', 'a\0', 'a\nb'])(
    'cannot be %j',
    (name) => {
      expect(secretNameFault(name)).toBeTypeOf('string');
    },
  );

  test('is not longer than a file system takes', () => {
    expect(secretNameFault('a'.repeat(256))).toBe('is longer than 255 characters');
  });
});

const fixture = (name: string) =>
  readFileSync(join(import.meta.dirname, '..', '..', 'postgres', 'connection', 'fixtures', name), 'utf8');
const [CA, OTHER, CERT, KEY] = [
  fixture('ca.cert.pem'),
  fixture('other-ca.cert.pem'),
  fixture('localhost.cert.pem'),
  fixture('localhost.key.pem'),
];
const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const text = String(privateKey.export({ format: 'pem', type: 'pkcs8' }));
const locked = { format: 'pem', cipher: 'aes-256-cbc', passphrase: 'p' } as const;

test('certificates are one or several, with comments between them', () => {
  expect(certificatesFault(CA)).toBeNull();
  expect(certificatesFault(`# the one\n${CA}\n# the other\n${OTHER}`)).toBeNull();
  expect(certificatesFault('')).toBe('has no certificate in PEM');
  expect(certificatesFault(CA.replace(/-----END[^]*/, ''))).toBe('has a block of PEM that does not end');
  expect(certificatesFault(`${CA}${OTHER.replace('MII', 'AAA')}`)).toBe(
    'has a block of PEM that is no certificate: number 2',
  );
});

test('a private key among certificates is refused, whole or broken: answers would show it', { tags: [ATTACK] }, () => {
  const half = text.slice(0, 60);
  for (const key of [text, half, KEY])
    for (const both of [`${CA}${key}`, `${key}${CA}`])
      expect(certificatesFault(both)).toMatch(/^has a private key, which answers would show/);
});

test('a private key is in PEM and not encrypted, whatever its kind, and no message repeats it', () => {
  expect(privateKeyFault(text)).toBeNull();
  expect(privateKeyFault(KEY)).toBeNull();
  expect(privateKeyFault(String(privateKey.export({ format: 'pem', type: 'sec1' })))).toBeNull();
  for (const type of ['pkcs8', 'sec1'] as const)
    expect(privateKeyFault(String(privateKey.export({ ...locked, type })))).toMatch(/^is encrypted/);
  for (const wrong of ['canary', CA, text.slice(0, 60)])
    expect(privateKeyFault(wrong)).toBe('is no private key in PEM');
});

test('a key belongs to the first of the certificates', () => {
  expect(keyOfAnotherFault(CERT, KEY)).toBeNull();
  expect(keyOfAnotherFault(`${CERT}${CA}`, KEY)).toBeNull();
  expect(keyOfAnotherFault(`${CA}${CERT}`, KEY)).toMatch(/^does not belong/);
  expect(keyOfAnotherFault(CERT, text)).toMatch(/^does not belong/);
});
