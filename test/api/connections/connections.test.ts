import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openConnection } from '../../../src/core/connections/connection-secrets.ts';
import { createKeyRing } from '../../../src/core/secrets/key-ring.ts';
import { type Database, openDatabase } from '../../../src/postgres/database.ts';
import { CONNECTION_ROWS } from '../../../src/store/connections/find-connections.ts';
import { findNamed } from '../../../src/store/names/named-rows.ts';
import { SECRETS } from '../../support/secrets.ts';
import { type Answer, type Api, faultPaths, quietApi, startApi } from '../api.ts';

const api = quietApi({ takesSecretFiles: true });
let database: Database;
let databaseUrl: string;
beforeAll(() => {
  const { host, port, user, pass, database: name } = api.sql.options;
  databaseUrl = `postgres://${user}:${String(pass)}@${host[0]}:${port[0]}/${name}`;
  database = openDatabase(databaseUrl, 1);
});
afterAll(() => database.close());

const at = (id: string) => `/api/v1/connections/${id}`;
const put = (id: string, body: unknown, headers?: Record<string, string>, on: Api = api) =>
  on.call('PUT', at(id), body, headers);
const opened = async (id: string) => {
  const stored = await database.run((db) => findNamed(db, CONNECTION_ROWS, { id }));
  return stored && openConnection(SECRETS, stored, (name) => `content of ${name}`);
};
const detail = (answer: Answer) => [answer.status, answer.body['detail']];
const pem = (name: string) =>
  readFileSync(join(import.meta.dirname, '..', '..', 'postgres', 'connection', 'fixtures', name), 'utf8');

const OAUTH = {
  ...{ type: 'oauth2', tokenUrl: 'https://login.example/token?tenant=1', clientId: 'me' },
  ...{ clientSecret: 'canary-client', scope: 'a:b c', audience: 'https://api.example' },
};
const ALL = {
  description: 'All that there is',
  url: 'https://api.example/v1',
  headers: { 'X-Key': 'canary-header', 'X-File': { file: 'team/x-file' } },
  auth: OAUTH,
  tls: { ca: pem('ca.cert.pem'), cert: pem('localhost.cert.pem'), key: pem('localhost.key.pem') },
};
const bearer = (token: unknown, more: object = {}) => ({
  ...{ url: 'https://api.example', auth: { type: 'bearer', token } },
  ...more,
});

test('secrets are stored encrypted, and answered as ***, in a list too', async () => {
  const made = await put('all', ALL);
  expect(made.body).toEqual({
    ...ALL,
    id: 'all',
    headers: { 'X-Key': '***', 'X-File': { file: 'team/x-file' } },
    auth: { ...OAUTH, clientSecret: '***' },
    tls: { ...ALL.tls, key: '***' },
    version: 1,
    updatedAt: made.body['updatedAt'],
  });
  const [row] = await api.sql<
    { text: string }[]
  >`SELECT connections::text AS text FROM connections WHERE id = 'all'`;
  expect(row?.text).not.toMatch(/canary|PRIVATE/);
  expect(await opened('all')).toMatchObject({
    headers: { 'X-Key': 'canary-header', 'X-File': 'content of team/x-file' },
    auth: OAUTH,
    tls: ALL.tls,
  });
  expect((await api.call('GET', '/api/v1/connections?q=all')).body['items']).toEqual([made.body]);
  for (const same of [made.body, ALL]) expect((await put('all', same)).body).toEqual(made.body);
});

test('a secret that is sent back masked is kept, and another one replaces it', async () => {
  await put('kept', ALL);
  const edited = {
    ...ALL,
    headers: { 'x-KEY': '***' },
    auth: { ...OAUTH, clientSecret: '***', scope: null },
  };
  const answer = await put('kept', { ...edited, tls: { ...ALL.tls, key: '***' } });
  expect([answer.status, answer.body['version']]).toEqual([200, 2]);
  expect(await opened('kept')).toMatchObject({
    headers: { 'x-KEY': 'canary-header' },
    auth: { ...OAUTH, scope: null },
    tls: ALL.tls,
  });
  await put('kept', { ...edited, auth: { ...OAUTH, clientSecret: 'rotated' }, tls: null });
  expect(await opened('kept')).toMatchObject({ auth: { clientSecret: 'rotated' }, tls: null });
  const moved = await put('kept', { ...edited, url: 'https://api.example:443/v2', auth: null, tls: null });
  expect(moved.status).toBe(200);
  expect(await opened('kept')).toMatchObject({ headers: { 'x-KEY': 'canary-header' } });
});

test('a dry run says what PUT would change or refuse, shows no secret, and changes nothing', async () => {
  const tried = (body: unknown) => api.call('POST', `${at('tried')}/dry-run`, body);
  expect((await tried(ALL)).body).toEqual({ id: 'tried', change: 'created', fields: [] });
  expect((await api.call('GET', at('tried'))).status).toBe(404);
  const { body: made } = await put('tried', ALL);
  expect((await tried(made)).body).toMatchObject({ change: 'unchanged', fields: [] });
  const edited = {
    ...{ description: null, headers: { 'X-File': '***', 'X-New': 'canary-new' } },
    auth: { ...OAUTH, clientSecret: 'canary-2' },
    tls: null,
  };
  expect(faultPaths(await tried({ ...ALL, ...edited }))).toEqual(['/headers/X-File']);
  const fits = { ...ALL, ...edited, headers: { 'X-New': 'canary-new', 'X-Key': 'canary-header' } };
  const { body, text } = await tried(fits);
  expect(body).toMatchObject({
    change: 'updated',
    fields: [
      { path: '/description', before: ALL.description, after: null },
      { path: '/headers/X-File', before: { file: 'team/x-file' }, after: null },
      { path: '/headers/X-New', before: null, after: '***' },
      { path: '/auth/clientSecret', before: '***', after: '***' },
      { path: '/tls', before: { ...ALL.tls, key: '***' }, after: null },
    ],
  });
  expect(text).not.toContain('canary');
  expect((await api.call('GET', at('tried'))).body).toEqual(made);
});

test('a mask needs a stored value in its place; a certificate has to fit the key that is kept', async () => {
  const { headers: _, ...bare } = ALL;
  const nothing = { ...bare, headers: { A: '***' }, auth: { ...OAUTH, clientSecret: '***' } };
  const answer = await put('unmasked', { ...nothing, tls: { ...ALL.tls, key: '***' } });
  expect([answer.status, faultPaths(answer)]).toEqual([
    400,
    ['/auth/clientSecret', '/headers/A', '/tls/key'],
  ]);
  await put('masked', { ...ALL, auth: { type: 'bearer', token: { file: 'token' } } });
  expect(faultPaths(await put('masked', bearer('***')))).toEqual(['/auth/token']);
  const other = { ...ALL.tls, cert: pem('ca.cert.pem'), key: '***' };
  const unfit = await put('masked', bearer('t', { tls: other }));
  expect(unfit.body['errors']).toEqual([
    { path: '/tls/key', message: 'does not belong to the first certificate of cert' },
  ]);
});

test('a connection that schedules or open runs name is not deleted, and the answer names them', async () => {
  await put('used', bearer('t'));
  const run = { target: { type: 'pull', queue: 'q' } };
  const schedule = { cron: '0 12 29 2 *', target: { type: 'pull', queue: 'q' } };
  await api.call('PUT', '/api/v1/schedules/names-it', schedule);
  const id = (await api.call('POST', '/api/v1/runs', run)).body['id'] as unknown as string;
  await api.sql`UPDATE schedules SET lane = 'http connection used' WHERE id = 'names-it'`;
  await api.sql`UPDATE runs SET lane = 'http connection used' WHERE id = ${id}`;
  const deleted = () => api.call('DELETE', at('used'));
  expect(detail(await deleted())).toEqual([
    409,
    `the connection is named by schedules names-it and open runs ${id}`,
  ]);
  await api.sql`UPDATE schedules SET lane = 'http connection useds' WHERE id = 'names-it'`;
  expect(detail(await deleted())).toEqual([409, `the connection is named by open runs ${id}`]);
  await api.call('POST', `/api/v1/runs/${id}/cancel`);
  expect((await deleted()).status).toBe(204);
});

describe('without a key and a directory of secrets', () => {
  let bare: Api;
  beforeAll(async () => {
    bare = await startApi(databaseUrl, { secrets: createKeyRing([]) });
  });
  afterAll(() => bare.stop());

  test('secret values and files are refused, each by its name, and nothing is stored', async () => {
    const answer = await put('bare', ALL, undefined, bare);
    expect([answer.status, faultPaths(answer)]).toEqual([
      422,
      ['/auth/clientSecret', '/headers/X-File', '/headers/X-Key', '/tls/key'],
    ]);
    for (const name of ['FIRELOCK_SECRET_KEYS', 'FIRELOCK_SECRETS_DIR']) expect(answer.text).toContain(name);
    expect(answer.text).not.toContain('canary');
    expect((await bare.call('GET', at('bare'))).status).toBe(404);
  });

  test('a connection that needs none is accepted, and a stored one can be kept and edited around', async () => {
    const plain = { url: 'https://api.example', tls: { ca: ALL.tls.ca } };
    expect((await put('bare', plain, undefined, bare)).status).toBe(201);
    const { text } = await put('there', ALL);
    const edited = { ...(JSON.parse(text) as object), description: 'edited' };
    expect((await put('there', edited, undefined, bare)).body['version']).toBe(2);
    expect(await opened('there')).toMatchObject({ headers: { 'X-File': 'content of team/x-file' } });
  });
});
