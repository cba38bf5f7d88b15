import { generateKeyPairSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { faultPaths, quietApi } from '../api.ts';

const api = quietApi({ takesSecretFiles: true });
const put = (body: unknown) => api.call('PUT', '/api/v1/connections/wrong', body);
const faultsOf = async (body: object) => {
  const answer = await put({ url: 'https://api.example', ...body });
  expect(answer.text).not.toContain('canary');
  return answer.status < 300 ? ['accepted'] : faultPaths(answer);
};
const messageOf = async (body: object) =>
  (await put({ url: 'https://api.example', ...body })).body['errors']?.[0]?.['message'] as unknown;
const fixture = (name: string) =>
  readFileSync(join(import.meta.dirname, '..', '..', 'postgres', 'connection', 'fixtures', name), 'utf8');
const LONG = 'a'.repeat(64);
const OAUTH = { type: 'oauth2', tokenUrl: 'https://l.example/t', clientId: 'c', clientSecret: 's' };

test('every fault of a connection is named at once', async () => {
  const answer = await put({
    id: 'other',
    description: 5,
    url: 'https://user:canary@api.example/{{runId}}',
    headers: {
      'A B': 'canary',
      te: 'canary',
      authorization: 'canary {{runId}}',
      'X-A': 'canary\n',
      'X-B': 5,
      'X-C': { file: '../canary' },
      'X-D': { file: 'a', seal: null },
      'x-a': 'canary',
    },
    auth: { type: 'basic', username: 'a:b', password: 'canary\u0000', token: 'canary' },
    tls: { ca: 'canary', cert: 'canary', key: null },
    extra: 1,
  });
  expect(answer.status).toBe(400);
  expect(answer.text).not.toContain('canary\\n');
  expect(faultPaths(answer)).toEqual(
    [
      ...['/auth/password', '/auth/token', '/auth/username', '/description', '/extra', '/headers/A B'],
      ...['/headers/X-A', '/headers/X-B', '/headers/X-C/file', '/headers/X-D/seal', '/headers/authorization'],
      ...['/headers/te', '/headers/x-a', '/id', '/tls/ca', '/tls/cert', '/tls/key', '/url'],
    ].sort(),
  );
});

test.each([
  ['ftp://api.example', 'must be an absolute http or https URL'],
  ['/v1', 'must be an absolute http or https URL'],
  ['https://u:p@api.example', 'must not have credentials; send them in a header'],
  ['https://api.example?x', 'must not have a query'],
  ['https://api.example/#x', 'must not have a fragment'],
  ['https://api.example/{{runId}}', 'must not have templates: a connection is the same for all runs'],
  ['https://api.example/a/../b', 'must have its path as it is sent: /b'],
  ['https://api.example/a/%2E%2e/b', 'must have its path as it is sent: /b'],
  ['https://api.example\\@evil.example', 'must have its path as it is sent: /@evil.example'],
  ['https://api.example/ü', 'must have its path as it is sent: /%C3%BC'],
  ['https://api.example/a//b', 'must not have // in its path'],
  [`https://${LONG}.example`, expect.stringMatching(/^must have at most 63 characters/)],
  ['https://api.example:99999', 'must be a URL'],
])('the url %s is refused', async (url, message) => {
  expect(await messageOf({ url })).toEqual(message);
});

test.each([
  'https://api.example',
  'https://api.example/',
  'http://[::1]:8080/a/b/',
  'HTTPS://API.example:443/projects/group%2Fname',
])('the url %s is accepted', async (url) => {
  expect(await faultsOf({ url })).toEqual(['accepted']);
});

test('a header for logging in and auth exclude each other, in any letter case', async () => {
  const auth = { type: 'bearer', token: 't' };
  expect(await faultsOf({ headers: { AUTHORIZATION: 'x' }, auth })).toEqual(['/headers/AUTHORIZATION']);
  expect(await faultsOf({ headers: { AUTHORIZATION: 'x' } })).toEqual(['accepted']);
});

test('auth is of a known type, with all of its fields, and can be sent', async () => {
  expect(await messageOf({ auth: {} })).toBe('is required: "bearer" or "basic" or "oauth2"');
  expect(await messageOf({ auth: { type: 'digest' } })).toBe('must be "bearer" or "basic" or "oauth2"');
  expect(await messageOf({ auth: { type: 'bearer' } })).toBe('is required');
  expect(await messageOf({ auth: { type: 'bearer', token: null } })).toBe(
    'must be a string, or {"file": "NAME"}',
  );
  for (const token of ['', ' canary', 'canary\r\n', 'canary €', '☃'])
    expect(await faultsOf({ auth: { type: 'bearer', token } })).toEqual(['/auth/token']);
  const wrong = { tokenUrl: 'https://l.example/t#x', clientId: '', clientSecret: '', scope: 'a  b' };
  expect(await faultsOf({ auth: { ...OAUTH, ...wrong, audience: '\n' } })).toEqual(
    ['audience', 'clientId', 'clientSecret', 'scope', 'tokenUrl'].map((name) => `/auth/${name}`),
  );
  const empty = { type: 'basic', username: '', password: '' };
  for (const auth of [OAUTH, { ...OAUTH, tokenUrl: 'http://localhost:1/t?a=b', scope: 'a b' }, empty])
    expect(await faultsOf({ auth })).toEqual(['accepted']);
});

test('a file has a plain name, wherever it stands', async () => {
  const names = [
    '.',
    '..',
    '../a',
    'a/../b',
    '/a',
    'a/',
    'a//b',
    '.a',
    'a/.b',
    'a b',
    'a\\b',
    'ä',
    '',
    'a'.repeat(256),
  ];
  const named = (file: string) => ({
    headers: { 'X-A': { file } },
    auth: { ...OAUTH, clientSecret: { file } },
    tls: { ca: { file }, cert: { file }, key: { file } },
  });
  const places = ['/auth/clientSecret', '/headers/X-A', '/tls/ca', '/tls/cert', '/tls/key'];
  for (const name of names)
    expect([name, await faultsOf(named(name))]).toEqual([name, places.map((place) => `${place}/file`)]);
  for (const name of ['a', '0', 'team-a/token_1.txt', 'a'.repeat(255)])
    expect([name, await faultsOf(named(name))]).toEqual([name, ['accepted']]);
  expect(await faultsOf({ auth: { type: 'bearer', token: { file: 'a', path: 'canary' } } })).toEqual([
    '/auth/token/path',
  ]);
});

test('certificates and keys are read, and have to belong together', async () => {
  const [ca, cert, key] = ['ca.cert.pem', 'localhost.cert.pem', 'localhost.key.pem'].map(fixture);
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const exported = { format: 'pem', type: 'pkcs8' } as const;
  const other = privateKey.export(exported);
  const locked = privateKey.export({ ...exported, cipher: 'aes-256-cbc', passphrase: 'p' });
  expect(await faultsOf({ tls: { cert, key: other } })).toEqual(['/tls/key']);
  expect(await messageOf({ tls: { cert, key: locked } })).toMatch(/^is encrypted: decrypt it first/);
  expect(await messageOf({ tls: { cert } })).toBe('is required with cert');
  expect(await messageOf({ tls: { key } })).toBe('is required with key');
  expect(await messageOf({ tls: { ca: `${ca}${key}` } })).toMatch(/^has a private key, which answers/);
  expect(await faultsOf({ tls: { ca: '***' } })).toEqual(['/tls/ca']);
  expect(await faultsOf({ tls: { ca: 'a'.repeat(65_537) } })).toEqual(['/tls/ca']);
  expect(await faultsOf({ tls: { ca, cert, key, crl: 'x' } })).toEqual(['/tls/crl']);
  for (const tls of [{}, { ca, cert, key }, { cert: { file: 'c' }, key }])
    expect(await faultsOf({ tls })).toEqual(['accepted']);
});

test('there are at most 64 headers, of at most 8 KiB each', async () => {
  const many = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, n) => [`X-${n}`, 'v']));
  expect(await faultsOf({ headers: many(65) })).toEqual(['/headers']);
  expect(await faultsOf({ headers: { 'X-A': 'v'.repeat(8193) } })).toEqual(['/headers/X-A']);
  expect(await faultsOf({ headers: many(64) })).toEqual(['accepted']);
  expect(await faultsOf({ url: `https://api.example/${'a'.repeat(2048)}` })).toEqual(['/url']);
});
