import { describe, expect, test } from 'vitest';
import type { Connection, OAuthClient } from '../../../src/core/connections/connection.ts';
import type { SecretFile } from '../../../src/core/secrets/sealed-values.ts';
import {
  filesNamedIn,
  keyIdsOfConnection,
  openConnection,
  resealConnection,
  sealConnection,
} from '../../../src/core/connections/connection-secrets.ts';
import { createKeyRing } from '../../../src/core/secrets/key-ring.ts';
import { ATTACK } from '../../support/runner/attack.ts';
import { SECRETS, ringOf } from '../../support/secrets.ts';

const OAUTH: OAuthClient = {
  ...{ type: 'oauth2', tokenUrl: 'https://login.example/token', clientId: 'c', clientSecret: 'the-secret' },
  ...{ scope: null, audience: null },
};
const GIVEN: Connection = {
  ...{ uid: 'u', id: 'i', description: null, version: 1, edition: null, updatedAt: 0, placedAt: 0 },
  url: 'https://api.example/v1',
  urlSeal: null,
  headers: { 'X-Key': 'k', 'X-File': { file: 'header', seal: null } },
  auth: OAUTH,
  tls: { ca: 'the CA', cert: { file: 'cert', seal: null }, key: 'the key' },
};
const FILES: Record<string, string> = { header: 'from a file\n', cert: 'PEM\n', other: 'other' };
const readFile = (name: string): string => {
  const content = FILES[name];
  if (content === undefined) throw new Error('there is none');
  return content;
};
const stored = (given: Connection = GIVEN, before: Connection | null = null, ring = SECRETS): Connection => ({
  ...given,
  ...sealConnection(given, { ring, uid: given.uid, before }).fields,
});
const open = (connection: Connection, ring = SECRETS) => openConnection(ring, connection, readFile);
const NEWER = ringOf(`newer:${Buffer.alloc(32, 9).toString('base64')},test:${Buffer.alloc(32, 7).toString('base64')}`);
const KEYLESS = createKeyRing([]);

const sealed = stored();
/** The URL, as a holder of the key chose it. */
const at = (url: string) => ({ url, urlSeal: stored({ ...GIVEN, url }).urlSeal });
const fileIn = (connection: Connection) => connection.headers['X-File'] as SecretFile;

test('secret values and the names of files are encrypted, certificates are not, and all can be used again', () => {
  expect(keyIdsOfConnection(sealed)).toEqual(Array(6).fill('test'));
  expect(sealed.tls).toMatchObject({ ca: 'the CA', cert: { file: 'cert' }, key: { keyId: 'test' } });
  expect(JSON.stringify(sealed)).not.toMatch(/the-secret|the key/);
  expect(filesNamedIn(sealed)).toEqual(['header', 'cert']);
  expect(open(sealed)).toEqual({
    ...GIVEN,
    urlSeal: sealed.urlSeal,
    headers: { 'X-Key': 'k', 'X-File': 'from a file' },
    tls: { ca: 'the CA', cert: 'PEM', key: 'the key' },
  });
});

test('what is sent again stays as it is stored, whichever key is first; another key encrypts it anew', () => {
  expect(stored(GIVEN, sealed)).toEqual(sealed);
  expect(stored(GIVEN, sealed, NEWER)).toEqual(sealed);
  const anew = resealConnection(NEWER, sealed);
  expect(keyIdsOfConnection(anew)).toEqual(Array(6).fill('newer'));
  expect({ ...open(anew, NEWER), urlSeal: null }).toEqual({ ...open(sealed), urlSeal: null });
});

test('without a key the secret values are named, and files are not: they get their proof once there is a key', () => {
  const { fields, unsealed } = sealConnection(GIVEN, { ring: KEYLESS, uid: 'u', before: null });
  expect(unsealed.map(({ steps }) => steps.join('/'))).toEqual(['headers/X-Key', 'auth/clientSecret', 'tls/key']);
  const bare = { ...GIVEN, headers: { 'X-File': { file: 'header', seal: null } }, auth: null, tls: null };
  expect(stored(bare, null, KEYLESS)).toEqual(bare);
  expect(open(bare, KEYLESS).headers).toEqual({ 'X-File': 'from a file' });
  expect(fields.tls?.cert).toEqual({ file: 'cert', seal: null });
  const proven = stored(bare, bare);
  expect(fileIn(proven).seal).toMatchObject({ keyId: 'test' });
  expect(stored(bare, proven)).toEqual(proven);
});

test('a file that is missing or unfit is an error that names the place, and not the content', () => {
  const of = (file: string) => stored({ ...GIVEN, headers: { 'X-File': { file, seal: null } } });
  expect(() => open(of('nobody'))).toThrow('/headers/X-File cannot be taken from the file "nobody": there is none');
  FILES['wrong'] = 'two\nlines';
  expect(() => open(of('wrong'))).toThrow(
    '/headers/X-File cannot be taken from the file "wrong": it has a value with characters that no header can carry',
  );
  FILES['empty'] = '\n';
  const token = stored({ ...GIVEN, auth: { type: 'bearer', token: { file: 'empty', seal: null } } });
  expect(() => open(token)).toThrow('/auth/token cannot be taken from the file "empty": it is empty');
});

test('a way to log in that this version does not know is not left out', () => {
  expect(() => open({ ...sealed, auth: { type: 'newer' } as never })).toThrow('/auth/type');
});

describe('a row that someone edited in the database, without a key,', { tags: [ATTACK] }, () => {
  const value = sealed.headers['X-Key'] ?? '';
  const { clientSecret: secret } = sealed.auth as OAuthClient;
  const other = stored({ ...GIVEN, uid: 'v' });

  test.each<[string, Partial<Connection>, string]>([
    ['with another URL', { url: 'https://evil.example/v1' }, '/url is not the one that was chosen'],
    ['with another scheme', { url: 'http://api.example/v1' }, '/url is not the one that was chosen'],
    [
      'with another URL and no proof',
      { url: 'https://evil.example/v1', urlSeal: null },
      '/headers/X-Key cannot be decrypted',
    ],
    ['with the proof of another URL', at('https://evil.example/v1'), '/headers/X-Key cannot be decrypted'],
    ['with another uid', { uid: 'v' }, '/url cannot be decrypted'],
    [
      'with another token URL',
      { auth: { ...(sealed.auth as OAuthClient), tokenUrl: 'https://evil.example/token' } },
      '/auth/clientSecret cannot be decrypted',
    ],
    [
      'with a value of another connection',
      { headers: { 'X-Key': other.headers['X-Key'] ?? '' } },
      '/headers/X-Key cannot be decrypted',
    ],
    ['with a value at another header', { headers: { Accept: value } }, '/headers/Accept cannot be decrypted'],
    ['with a value as a token', { auth: { type: 'bearer', token: secret } }, '/auth/token cannot be decrypted'],
    [
      'with a value in place of a certificate',
      { tls: { ca: value, cert: null, key: null } },
      '/tls/ca cannot be decrypted',
    ],
    [
      'with another file',
      { headers: { 'X-File': { ...fileIn(sealed), file: 'other' } } },
      '/headers/X-File names the file "other", which is not the one that was chosen',
    ],
    [
      'with a file and no proof',
      { headers: { 'X-File': { file: 'header', seal: null } } },
      '/headers/X-File names the file "header" without a proof',
    ],
    [
      'with a file of another connection',
      { headers: { 'X-File': fileIn(other) } },
      '/headers/X-File cannot be decrypted',
    ],
    [
      'with a file at another place',
      { auth: { type: 'bearer', token: fileIn(sealed) } },
      '/auth/token cannot be decrypted',
    ],
    [
      'with a value as the proof of a file',
      { headers: { 'X-Key': { file: 'k', seal: value as never } } },
      '/headers/X-Key cannot be decrypted',
    ],
    [
      'with the proof of a file as a value',
      { headers: { 'X-File': fileIn(sealed).seal ?? '' } },
      '/headers/X-File cannot be decrypted',
    ],
  ])('%s, sends nothing', (_name, edit, message) => {
    expect(() => open({ ...sealed, ...edit })).toThrow(message);
  });

  test('with a file of another origin, reads no file', () => {
    const read: string[] = [];
    const moved = { ...sealed, ...at('https://evil.example/'), headers: { 'X-File': fileIn(sealed) } };
    const reading = (name: string) => (read.push(name), 'content');
    expect(() => openConnection(SECRETS, moved, reading)).toThrow('/headers/X-File cannot be decrypted');
    expect(read).toEqual([]);
  });
});

test('a header decrypts in another letter case, and under another path of the same origin', () => {
  const { 'X-Key': key = '' } = sealed.headers;
  const moved = { ...sealed, ...at('https://API.example:443/v2'), headers: { 'x-key': key } };
  expect(open(moved).headers).toEqual({ 'x-key': 'k' });
});
