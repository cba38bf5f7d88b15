import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { generateKeyPairSync } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test, beforeEach } from 'vitest';
import { openConnection } from '../../../src/core/connections/connection-secrets.ts';
import { createKeyRing } from '../../../src/core/secrets/key-ring.ts';
import { type Database, openDatabase } from '../../../src/postgres/database.ts';
import { CONNECTION_ROWS } from '../../../src/store/connections/find-connections.ts';
import { findNamed } from '../../../src/store/names/named-rows.ts';
import { SECRETS } from '../../support/secrets.ts';
import { type Answer, type Api, faultPaths, quietApi, sharedApi, detailOf } from '../api.ts';
import { ATTACK } from '../../support/runner/attack.ts';

const api = quietApi({ takesSecretFiles: true });
let database: Database;
beforeAll(() => {
  database = openDatabase(api.databaseUrl, 1);
});
afterAll(() => database.close());

const at = (id: string) => `/api/v1/connections/${id}`;
const put = (id: string, body: unknown, headers?: Record<string, string>, on: Api = api) =>
  on.call('PUT', at(id), body, headers);
const opened = async (id: string) => {
  const stored = await database.run((db) => findNamed(db, CONNECTION_ROWS, { id }));
  return stored && openConnection(SECRETS, stored, (name) => `content of ${name}`);
};
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
  const [row] = await api.sql<{ text: string }[]>`SELECT connections::text AS text FROM connections WHERE id = 'all'`;
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
  expect([answer.status, faultPaths(answer)]).toEqual([400, ['/auth/clientSecret', '/headers/A', '/tls/key']]);
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
  expect(detailOf(await deleted())).toEqual([409, `the connection is named by schedules names-it and open runs ${id}`]);
  await api.sql`UPDATE schedules SET lane = 'http connection useds' WHERE id = 'names-it'`;
  expect(detailOf(await deleted())).toEqual([409, `the connection is named by open runs ${id}`]);
  await api.call('POST', `/api/v1/runs/${id}/cancel`);
  expect((await deleted()).status).toBe(204);
});

describe('without a key and a directory of secrets', () => {
  const bare = sharedApi({ secrets: createKeyRing([]) }, api);

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

describe('what is refused:', () => {
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
    expect(await messageOf({ auth: { type: 'bearer', token: null } })).toBe('must be a string, or {"file": "NAME"}');
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
    const named = (file: string) => ({
      headers: { 'X-A': { file } },
      auth: { ...OAUTH, clientSecret: { file } },
      tls: { ca: { file }, cert: { file }, key: { file } },
    });
    const places = ['/auth/clientSecret', '/headers/X-A', '/tls/ca', '/tls/cert', '/tls/key'];
    expect(await faultsOf(named('../a'))).toEqual(places.map((place) => `${place}/file`));
    expect(await faultsOf(named('team-a/token_1.txt'))).toEqual(['accepted']);
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
    const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`X-${n}`, 'v']));
    expect(await faultsOf({ headers: many(65) })).toEqual(['/headers']);
    expect(await faultsOf({ headers: { 'X-A': 'v'.repeat(8193) } })).toEqual(['/headers/X-A']);
    expect(await faultsOf({ headers: many(64) })).toEqual(['accepted']);
    expect(await faultsOf({ url: `https://api.example/${'a'.repeat(2048)}` })).toEqual(['/url']);
  });
});

describe('an attack:', { tags: [ATTACK] }, () => {
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
    await expect(opened('stolen')).rejects.toThrow('/url cannot be decrypted');
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
      expect(await opened('stolen')).toMatchObject({ auth: { clientSecret: 'secret' } });
      await api.sql.unsafe(`UPDATE connections SET ${edit} WHERE id = 'stolen'`);
      await expect(opened('stolen'), edit).rejects.toThrow(/cannot be decrypted|names the file|is not the one/);
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
      await expect(opened('stolen'), edit).rejects.toThrow(/cannot be decrypted|names the file|is not the one/);
      await api.sql`DELETE FROM connections`;
    }
  });
});
