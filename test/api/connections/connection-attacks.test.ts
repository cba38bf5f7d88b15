// @module-tag attack
import { beforeEach, expect, test } from 'vitest';
import { openConnection } from '../../../src/core/connections/connection-secrets.ts';
import { openDatabase } from '../../../src/postgres/database.ts';
import { CONNECTION_ROWS } from '../../../src/store/connections/find-connections.ts';
import { findNamed } from '../../../src/store/names/named-rows.ts';
import { SECRETS } from '../../support/secrets.ts';
import { type Answer, faultPaths, quietApi } from '../api.ts';

const api = quietApi({ takesSecretFiles: true });
const put = (body: object, id = 'stolen') => api.call('PUT', `/api/v1/connections/${id}`, body);
const refused = (answer: Answer) => [answer.status, faultPaths(answer)];

const OAUTH = {
  ...{ type: 'oauth2', tokenUrl: 'https://login.example/t', clientId: 'c', clientSecret: 'secret' },
  ...{ scope: null, audience: null },
};
const URL_OF = { url: 'https://api.example' };
const EVIL = { url: 'https://evil.example' };
const masked = { ...OAUTH, clientSecret: '***' };
const inFile = { ...OAUTH, clientSecret: { file: 'client' } };

beforeEach(() => api.sql`DELETE FROM connections`);

test('a value that is kept by *** does not move to another origin, scheme or port', async () => {
  await put({ ...URL_OF, headers: { 'X-Key': 'secret' }, auth: { type: 'bearer', token: 'secret' } });
  const kept = { headers: { 'X-Key': '***' }, auth: { type: 'bearer', token: '***' } };
  for (const url of ['https://evil.example', 'http://api.example', 'https://api.example:8443'])
    expect(refused(await put({ url, ...kept }))).toEqual([400, ['/auth/token', '/headers/X-Key']]);
  expect((await put({ ...URL_OF, ...kept })).body['version']).toBe(1);
});

test('the secret of a client moves neither by the URL nor by the token URL', async () => {
  await put({ ...URL_OF, auth: OAUTH });
  const elsewhere = { ...masked, tokenUrl: 'https://evil.example/t' };
  for (const body of [
    { ...URL_OF, auth: elsewhere },
    { ...EVIL, auth: masked },
  ])
    expect(refused(await put(body))).toEqual([400, ['/auth/clientSecret']]);
  const samePlace = { ...masked, tokenUrl: 'https://login.example/other' };
  expect((await put({ ...URL_OF, auth: samePlace })).status).toBe(200);
});

test('a file does not move by its name: not in its place, and not to another one', async () => {
  await put({ ...URL_OF, headers: { 'X-Key': { file: 'key' } }, auth: inFile });
  const elsewhere = { ...inFile, tokenUrl: 'https://evil.example/t' };
  const thefts: [object, string][] = [
    [{ ...EVIL, headers: { 'X-Key': { file: 'key' } } }, '/headers/X-Key'],
    [{ ...EVIL, headers: { 'x-other': { file: 'key' } } }, '/headers/x-other'],
    [{ ...EVIL, auth: { type: 'bearer', token: { file: 'client' } } }, '/auth/token'],
    [{ ...URL_OF, auth: elsewhere }, '/auth/clientSecret'],
    [{ ...URL_OF, headers: { 'x-other': { file: 'client' } } }, '/headers/x-other'],
  ];
  for (const [body, path] of thefts) {
    const answer = await put(body);
    expect(refused(answer)).toEqual([400, [path]]);
    expect(answer.text).toContain('take it away first, or name another file');
  }
  expect((await put({ ...EVIL, headers: { 'X-Key': { file: 'another' } } })).status).toBe(200);
});

test('a connection that is created again under the id of a deleted one keeps nothing of it', async () => {
  await put({ ...URL_OF, auth: OAUTH });
  const [before] = await api.sql<{ definition: object }[]>`SELECT definition FROM connections`;
  await api.call('DELETE', '/api/v1/connections/stolen');
  expect(refused(await put({ ...URL_OF, auth: masked }))).toEqual([400, ['/auth/clientSecret']]);
  await put({ ...URL_OF, auth: { ...OAUTH, clientSecret: 'new' } });
  await api.sql`UPDATE connections SET definition = ${api.sql.json(before?.definition as never)}`;
  await expect(use('stolen')).rejects.toThrow('/url cannot be decrypted');
});

test('what someone edits in the database is not sent: another URL, file, or value of another connection', async () => {
  const edits = [
    "url = 'https://evil.example'",
    "definition = jsonb_set(definition, '{auth,tokenUrl}', '\"https://evil.example/t\"')",
    "definition = jsonb_set(definition, '{headers,X-Key,file}', '\"passwords\"')",
    "definition = jsonb_set(definition, '{headers,X-Key,seal}', 'null')",
    "definition = (SELECT definition FROM connections WHERE id = 'other')",
    "uid = (SELECT uid FROM connections WHERE id = 'other')",
  ];
  for (const edit of edits) {
    for (const id of ['stolen', 'other'])
      await put({ ...URL_OF, headers: { 'X-Key': { file: 'key' } }, auth: OAUTH }, id);
    expect(await use('stolen')).toMatchObject({ auth: { clientSecret: 'secret' } });
    await api.sql.unsafe(`UPDATE connections SET ${edit} WHERE id = 'stolen'`);
    await expect(use('stolen'), edit).rejects.toThrow(/cannot be decrypted|names the file|is not the one/);
    await api.sql`DELETE FROM connections`;
  }
});

test('a row that someone edited in the database gets no new proof when its answer is sent back', async () => {
  const edits = [
    "url = 'https://evil.example'",
    `url = 'https://evil.example', definition = jsonb_set(definition, '{headers,X-Key,seal}', 'null')`,
  ];
  for (const edit of edits) {
    await put({ ...URL_OF, headers: { 'X-Key': { file: 'key' } } });
    await api.sql.unsafe(`UPDATE connections SET ${edit}`);
    const { body } = await api.call('GET', '/api/v1/connections/stolen');
    const answer = await put({ ...body, description: 'edited' });
    const message = (answer.body['errors']?.[0]?.['message'] ?? 'kept') as string;
    expect([answer.status, message]).toEqual(
      edit.includes('null')
        ? [400, expect.stringMatching(/^names a file that is stored without a proof/)]
        : [200, 'kept'],
    );
    await expect(use('stolen'), edit).rejects.toThrow(/cannot be decrypted|names the file|is not the one/);
    await api.sql`DELETE FROM connections`;
  }
});

/** As a sender would. */
async function use(id: string) {
  const { host, port, user, pass, database: name } = api.sql.options;
  const database = openDatabase(`postgres://${user}:${String(pass)}@${host[0]}:${port[0]}/${name}`, 1);
  try {
    const stored = await database.run((db) => findNamed(db, CONNECTION_ROWS, { id }));
    if (!stored) throw new Error('there is none');
    return openConnection(SECRETS, stored, (file) => `content of ${file}`);
  } finally {
    await database.close();
  }
}
