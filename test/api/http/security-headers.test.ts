import { expect, test } from 'vitest';
import { newToken } from '../access/support.ts';
import { type Answer, SCHEDULE, sharedApi } from '../api.ts';

const token = newToken('someone', 'viewer');
const api = sharedApi({ apiTokens: [token.known] });

const ALWAYS = {
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
};
const PLAIN = {
  ...ALWAYS,
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
};

function among(names: object, { headers }: Pick<Answer, 'headers'>): object {
  return Object.fromEntries(Object.keys(names).map((name) => [name, headers.get(name)]));
}

test.each([
  ['GET', '/api/v1/schedules', 200, token.headers],
  ['GET', '/api/v1/schedules/none', 404, token.headers],
  ['PUT', '/api/v1/schedules/mine', 403, token.headers],
  ['GET', '/api/v1/schedules', 401, {}],
  ['POST', '/api/v1/instances', 405, token.headers],
  ['GET', '/nothing', 404, {}],
  ['GET', '/healthz', 200, {}],
  ['GET', '/readyz', 200, {}],
  ['GET', '/metrics', 200, {}],
  ['GET', '/openapi.json', 200, {}],
] as const)(
  '%s %s, answered %i, tells a browser to do nothing with it',
  async (method, path, status, headers) => {
    const body = method === 'PUT' ? SCHEDULE : undefined;
    const answer = await api.call(method, path, body, headers);
    expect(answer.status).toBe(status);
    expect(among(PLAIN, answer)).toEqual(PLAIN);
    for (const name of ['server', 'x-powered-by', 'via']) expect(answer.headers.get(name)).toBeNull();
  },
);

test('answers to requests that no route could take have the headers too', async () => {
  for (const bytes of [
    'nonsense\r\n\r\n',
    'GET /%zz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n',
  ]) {
    const answer = (await api.raw(bytes)).toLowerCase();
    for (const [name, value] of Object.entries(PLAIN))
      expect(answer).toContain(`${name}: ${value}`.toLowerCase());
    expect(answer).not.toMatch(/\r\nserver:|node_modules|\.ts:/);
  }
});

test('the pages of the documentation load all they need from here, and nothing from elsewhere', async () => {
  const page = await api.call('GET', '/docs/');
  expect(among(ALWAYS, page)).toEqual(ALWAYS);
  const policy = page.headers.get('content-security-policy') ?? '';
  expect(policy).toMatch(/^default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;/);
  expect(policy).toContain("frame-ancestors 'none'");
  expect(policy).not.toMatch(/unsafe|https?:/);
  // Nothing stands in the page itself that the policy would keep from working.
  expect(page.text).not.toMatch(/<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=/i);
  const loaded = [...page.text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path = '']) => path);
  expect(loaded.length).toBeGreaterThan(4);
  for (const path of loaded) {
    const answer = await api.call('GET', new URL(path, `${api.url}/docs/`).pathname);
    expect([path, answer.status]).toEqual([path, 200]);
    expect(among(ALWAYS, answer)).toEqual(ALWAYS);
    expect(answer.headers.get('content-type')).toMatch(
      /^(text\/css|application\/javascript|text\/javascript|image\/(png|svg\+xml))/,
    );
  }
});
