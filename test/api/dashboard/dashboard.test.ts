import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { readDashboard } from '../../../src/api/dashboard/routes.ts';
import { newToken } from '../access/support.ts';
import { type Api, startApi } from '../api.ts';

const SCRIPT = `console.log(${'1'.repeat(500)});`;
/** The dashboard is served without a token and while the database is away; here nothing is asked of it. */
const NO_DATABASE = 'postgres://nobody:nothing@127.0.0.1:9/none';

let directory: string;
let api: Api;
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'firelock-dashboard-'));
  mkdirSync(join(directory, 'assets'));
  writeFileSync(join(directory, 'pages.json'), '{"overview":"/","schedule":"/schedules/:id"}');
  writeFileSync(join(directory, 'index.html'), '<!doctype html><base href="/" /><p>pages</p>');
  writeFileSync(join(directory, 'assets', 'index-a1.js'), SCRIPT);
  writeFileSync(join(directory, 'secret.txt'), 'not to be served');
  const { known } = newToken('ci', 'viewer');
  api = await start('/ops', [known]);
});
afterAll(async () => {
  await api.stop();
  rmSync(directory, { recursive: true });
});

function start(basePath: string, apiTokens: ReturnType<typeof newToken>['known'][] = []): Promise<Api> {
  const dashboard = readDashboard(directory);
  return startApi(NO_DATABASE, { basePath, apiTokens, ...(dashboard && { dashboard }) });
}

it('each page is the same document, which knows the base path and may load nothing from elsewhere', async () => {
  for (const path of ['/ops', '/ops/', '/ops/schedules/nightly-report', '/ops/schedules/a%2Fb?tab=runs']) {
    const { status, text, headers } = await api.call('GET', path);
    expect([path, status]).toEqual([path, 200]);
    expect(text).toBe('<!doctype html><base href="/ops/" /><p>pages</p>');
    expect(headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(headers.get('cache-control')).toBe('no-cache');
    const policy = headers.get('content-security-policy') ?? '';
    expect(policy).toMatch(/^default-src 'none'; script-src 'self'; style-src 'self';/);
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toMatch(/unsafe|\*|https?:/);
    expect(headers.get('x-content-type-options')).toBe('nosniff');
  }
});

it('the document says whether the signs of life are on another port', async () => {
  const facts = { basePath: '', hasSignsElsewhere: true };
  const file = await readDashboard(directory)?.document(facts);
  expect(String(file?.plain)).toBe('<!doctype html><base href="/" data-signs="elsewhere" /><p>pages</p>');
});

it('any other path is answered with a problem, and a page takes no other methods', async () => {
  for (const path of ['/', '/ops/nope', '/ops/schedules', '/ops/schedules/a/b', '/ops/assets', '/ops/index.html']) {
    const { status, headers } = await api.call('GET', path);
    expect([path, status]).toEqual([path, 404]);
    expect(headers.get('content-type')).toMatch(/^application\/problem\+json/);
  }
  const posted = await api.call('POST', '/ops/', {});
  expect([posted.status, posted.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
  expect((await api.call('GET', '/ops/api/v1/schedules')).status).toBe(401);
});

it('a browser at an unknown path gets the document, which says so; paths of the API and outside the base path do not', async () => {
  const asBrowser = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };
  const page = await api.call('GET', '/ops/');
  const document = { 'if-none-match': page.headers.get('etag') ?? '', ...asBrowser };
  for (const path of ['/ops/nope', '/ops/schedules/a/b?tab=runs', '/ops/assets']) {
    const { status, text, headers } = await api.call('GET', path, undefined, document);
    expect([path, status, text]).toEqual([path, 404, page.text]);
    for (const name of ['content-type', 'content-security-policy', 'x-content-type-options'])
      expect([path, name, headers.get(name)]).toEqual([path, name, page.headers.get(name)]);
  }
  const head = await api.call('HEAD', '/ops/nope', undefined, asBrowser);
  expect([head.status, head.text]).toEqual([404, '']);
  for (const [method, path, expected] of [
    ['GET', '/nope', 404],
    ['GET', '/ops/api/nope', 404],
    ['GET', '/ops/api/v1/nope', 401],
    ['GET', '/ops/assets/nope.js', 404],
    ['POST', '/ops/nope', 404],
    ['DELETE', '/ops/', 405],
  ] as const) {
    const { status, headers } = await api.call(method, path, undefined, asBrowser);
    expect([method, path, status]).toEqual([method, path, expected]);
    expect(headers.get('content-type')).toMatch(/^application\/problem\+json/);
  }
});

it('HEAD answers the same without the document, and a browser that has the document does not get it again', async () => {
  const whole = await api.call('GET', '/ops/');
  const head = await api.call('HEAD', '/ops/');
  expect([head.status, head.text]).toEqual([200, '']);
  expect(head.headers.get('content-security-policy')).toBe(whole.headers.get('content-security-policy'));
  const etag = whole.headers.get('etag') ?? '';
  const again = await api.call('GET', '/ops/', undefined, { 'if-none-match': etag });
  expect([again.status, again.text, again.headers.get('etag')]).toEqual([304, '', etag]);
});

it('assets are cached for good, and compressed for browsers that can read that', async () => {
  const path = '/ops/assets/index-a1.js';
  const zipped = await api.call('GET', path);
  expect([zipped.status, zipped.text]).toEqual([200, SCRIPT]);
  expect(zipped.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
  expect(zipped.headers.get('content-type')).toBe('text/javascript; charset=utf-8');
  expect(zipped.headers.get('content-encoding')).toBe('gzip');
  const plain = await api.call('GET', path, undefined, { 'accept-encoding': 'identity' });
  expect([plain.text, plain.headers.get('content-encoding')]).toEqual([SCRIPT, null]);
  const bytes = await api.raw(
    `GET ${path} HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: br, gzip\r\nConnection: close\r\n\r\n`,
  );
  const body = Buffer.from(bytes.slice(bytes.indexOf('\r\n\r\n') + 4), 'latin1');
  expect(gunzipSync(body).toString()).toBe(SCRIPT);
});

it('no path leads out of the folder of assets', async () => {
  for (const name of ['nope.js', '..%2Fsecret.txt', '..%2Findex.html', '%2e%2e%2fpages.json', 'x%2F..%2Findex-a1.js']) {
    const { status, text } = await api.call('GET', `/ops/assets/${name}`);
    expect([name, status]).toEqual([name, 404]);
    expect(text).not.toContain('not to be served');
  }
});

it('if it was not built, the API works and says what is missing', async () => {
  expect(readDashboard(join(directory, 'nothing'))).toBeNull();
  const bare = await startApi(NO_DATABASE);
  onTestFinished(() => bare.stop());
  const { status, body } = await bare.call('GET', '/');
  expect([status, body['detail']]).toEqual([404, expect.stringMatching(/npm run build/)]);
  expect((await bare.call('GET', '/healthz')).status).toBe(200);
});
