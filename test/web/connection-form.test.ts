import { expect, it } from 'vitest';
import type { Connection } from '../../clients/typescript/src/generated/types.gen.ts';
import { EMPTY, bodyOf, draftOf, faultsOf } from '../../web/src/pages/connections/connection-draft.ts';
import { isOfPairs } from '../../web/src/parts/forms/pair.ts';

/** As the API answers it. */
function stored(changes: Partial<Connection>): Connection {
  const what = { id: 'chat', description: null, url: 'https://a/v1', headers: {}, auth: null, tls: null };
  return { ...what, version: 2, updatedAt: '2026-11-20T09:00:00.000Z', ...changes };
}

const FILE = { file: 'chat/secret' };
const OAUTH = { type: 'oauth2' as const, tokenUrl: 'https://b/t', clientId: 'me', clientSecret: '***' };

it.each<[string, Partial<Connection>]>([
  ['nothing but its URL', {}],
  ['headers, one of which is a file', { headers: { 'X-A': '***', 'X-B': FILE } }],
  ['a token', { auth: { type: 'bearer', token: '***' } }],
  ['a token in a file', { auth: { type: 'bearer', token: FILE } }],
  ['a password', { auth: { type: 'basic', username: 'me', password: FILE } }],
  ['a client', { auth: { ...OAUTH, scope: null, audience: null } }],
  ['a client that asks for something', { auth: { ...OAUTH, scope: 'a b', audience: 'c' } }],
  ['an authority', { tls: { ca: '-----\r\n', cert: null, key: null } }],
  ['a certificate and its key', { tls: { ca: null, cert: FILE, key: '***' } }],
])('an untouched form sends back what it was made from: %s', (_name, changes) => {
  const connection = stored(changes);
  const { url, headers, auth, tls } = connection;
  expect(bodyOf(draftOf(connection))).toEqual({ url, headers, auth, tls });
});

it('what is typed for another way to log in is not sent, and rows in which nothing is typed are left out', () => {
  const token = { text: 'abc', isFile: false };
  const headers = { values: [['', ''] as const, ['X-A', ''] as const], files: [['', ''] as const] };
  const draft = { ...EMPTY, url: 'https://a', token, headers };
  expect(bodyOf(draft)).toEqual({ url: 'https://a', headers: { 'X-A': '' }, auth: null, tls: null });
  expect(bodyOf({ ...draft, authType: 'basic', username: 'me' })['auth']).toEqual({
    ...{ type: 'basic', username: 'me', password: '' },
  });
});

it('a header that is there twice is refused at once, and a fault of one from a file stands beside the files', () => {
  const headers = { values: [['X/A', '1'] as const], files: [['X/A', 'a'] as const] };
  const draft = { ...EMPTY, headers };
  expect(faultsOf(draft)).toEqual([{ path: '/headers', message: 'X/A is there twice' }]);
  const isOfFiles = (path: string) => isOfPairs({ path }, '/headers', headers.files);
  expect(['/headers/X~1A', '/headers/X~1A/file', '/headers/X~1AB', '/headers'].map(isOfFiles)).toEqual([
    ...[true, true, false, false],
  ]);
});
