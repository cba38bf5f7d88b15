// @module-tag attack
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newToken } from '../api/access/support.ts';
import { type Api, SCHEDULE, sendBytes, startApi } from '../api/api.ts';
import type { Dashboard } from '../../src/api/deps.ts';
import { addressRanges, parseAllowedHosts } from '../../src/config/address-ranges.ts';
import { startDaemon } from '../support/daemon.ts';
import { until } from '../support/until.ts';
import { expectHarmless, refusalIn, rowCounts } from './harmless.ts';

const admin = newToken('ops', 'admin');
let open: Api;
let guarded: Api;
beforeAll(async () => {
  const [hosts] = parseAllowedHosts('cron.internal,Firelock.,10.9.0.0/16,[fd00:9::9]');
  open = await startApi(undefined, { allowedHosts: hosts, dashboard: DASHBOARD });
  guarded = await startApi(undefined, {
    apiTokens: [admin.known],
    trustedProxies: addressRanges(['127.0.0.1']),
  });
  for (const api of [open, guarded]) await api.call('PUT', FIRED, SCHEDULE, admin.headers);
});
afterAll(async () => {
  await open.stop();
  await guarded.stop();
});

const FILE = { type: 'text/html', plain: Buffer.from('<p>'), zipped: Buffer.from(''), etag: '"1"' };
const DASHBOARD: Dashboard = {
  pages: ['/', '/schedules'],
  document: () => Promise.resolve(FILE),
  asset: () => Promise.resolve(FILE),
};
const FIRED = '/api/v1/schedules/there';

async function send({ url }: { url: string }, line: string, headers: string[], version = '1.1') {
  const head = [`${line} HTTP/${version}`, ...headers, 'Connection: close'];
  return refusalIn(await sendBytes(url, `${head.join('\r\n')}\r\n\r\n`));
}

const PATHS = [
  ...'/ /schedules /assets/a.js /nothing /%zz /healthz /readyz /metrics /openapi.json /docs/'.split(' '),
  ...['/docs/static/index.html', '/api/v1/schedules', '/api/v1/nothing', `${FIRED}?nope=1`],
];
/** How a header may be written is tried there, two ways of it everywhere: that all paths read it alike is to be seen by these. */
const waysOf = (headers: readonly string[], path: string) =>
  path === '/api/v1/schedules' ? headers : headers.slice(0, 2);

describe('without tokens', () => {
  test.each(PATHS)('a name that a stranger points here (DNS rebinding) gets nothing of %s', async (path) => {
    const strange =
      'evil.example 192.0.2.1 evil.example:8080 localhost.evil.example evil.localhost 127.0.0.1.evil.example ' +
      'localhost@evil.example evil.example#localhost 127.1 2130706433 0.0.0.0 10.10.0.1 [::2] [::ffff:127.0.0.1] localhost:80:80';
    for (const host of waysOf([...strange.split(' '), 'localhost localhost', '', 'x'.repeat(5000)], path)) {
      const answer = await send(open, `GET ${path}`, [`Host: ${host}`]);
      expectHarmless(`Host: ${host.slice(0, 30)}`, answer, [403]);
      expect(answer.text).toContain('FIRELOCK_ALLOWED_HOSTS');
      expect(answer.text.length).toBeLessThan(1000);
    }
    expectHarmless('no Host', await send(open, `GET ${path}`, [], '1.0'), [403]);
    const both = await send(open, `GET ${path}`, ['Host: localhost', 'Host: evil.example']);
    expectHarmless('two Hosts', both, path.endsWith('nothing') ? [404] : [400]);
    const absolute = await send(open, `GET http://evil.example:8080${path}`, ['Host: localhost']);
    expectHarmless('an absolute target', absolute, [403]);
    const user = await send(open, `GET http://localhost@evil.example${path}`, ['Host: localhost']);
    expectHarmless('an absolute target with a user', user, [403]);
  });

  test.each(PATHS)('a page of this machine, or of a name that is listed, gets %s', async (path) => {
    const ours =
      'localhost cron.internal LOCALHOST:1 localhost.:8080 127.0.0.1 127.9.8.7:99 [::1] [0:0::1]:8080 ' +
      'Cron.Internal.:443 firelock:8080 10.9.255.1 [fd00:9:0::9]:80';
    for (const host of waysOf(ours.split(' '), path)) {
      const { status } = await send(open, `GET ${path}`, [`Host: ${host}`]);
      expect([host, status === 403]).toEqual([host, false]);
    }
  });

  test.each([
    'Forwarded: for=192.0.2.1',
    'X-Forwarded-For: 192.0.2.1',
    'x-forwarded-proto: https',
    'X-Forwarded-Anything: 1',
    'X-Real-IP: 192.0.2.1',
    'Via: 1.1 proxy',
    'X-Forwarded-Host:',
  ])('what a proxy passes on (%s) is refused on every path', async (header) => {
    for (const path of PATHS) {
      const answer = await send(open, `GET ${path}`, ['Host: localhost', header]);
      expectHarmless(path, answer, [403]);
      expect(answer.text).toContain('FIRELOCK_API_TOKENS');
    }
    expect((await send(guarded, 'GET /healthz', ['Host: localhost', header])).status).toBe(200);
  });

  test('a daemon refuses both on both of its ports', async () => {
    const nowhere = { DATABASE_URL: 'postgres://127.0.0.1:9/none', FIRELOCK_METRICS_PORT: '0' };
    const daemon = await startDaemon(nowhere);
    const { msg } = await daemon.logged(/^\/metrics, \/healthz and \/readyz are on /);
    const signs = { url: /http:\S+/.exec(msg)?.[0] ?? '' };
    for (const [api, path] of [
      [daemon, '/api/v1/schedules'],
      [signs, '/healthz'],
      [signs, '/readyz'],
      [signs, '/metrics'],
      [signs, '/nothing'],
    ] as const) {
      expect((await send(api, `GET ${path}`, ['Host: localhost'])).status).not.toBe(403);
      for (const headers of [['Host: evil.example'], ['Host: localhost', 'Via: 1.1 x']])
        expectHarmless(path, await send(api, `GET ${path}`, headers), [403]);
    }
    // They are written once a second.
    await until(async () => {
      const { text } = await send(signs, 'GET /metrics', ['Host: localhost']);
      const counted = ['foreignHost', 'proxyMark'].map((reason) => `calls_refused_total{reason="${reason}"} 5\n`);
      return counted.every((line) => text.includes(line)) ? true : null;
    });
  });
});

describe.each([
  ['without tokens', () => open, []],
  ['with a token', () => guarded, [`Authorization: ${admin.headers.authorization}`]],
] as const)('%s', (_, api, authorization) => {
  const host = () => new URL(api().url).host;
  const own = () => [`Host: ${host()}`, ...authorization];
  const fire = (...headers: string[]) => send(api(), `POST ${FIRED}/fire`, [...own(), ...headers]);

  test('a page of another site can neither fire nor change anything, and its request leaves nothing but a line in the audit', async () => {
    const before = await rowCounts(api().sql);
    for (const [place, header] of [
      'Sec-Fetch-Site: cross-site',
      'Origin: http://evil.example',
      'Sec-Fetch-Site: same-site',
      'Sec-Fetch-Site: ',
      'Sec-Fetch-Site: same-origin, cross-site',
      'Sec-Fetch-Site: SAME-ORIGIN',
      'Origin: null',
      'Origin: ',
      `Origin: http://evil.example:${new URL(api().url).port}`,
      `Origin: http://${host()}.evil.example`,
      `Origin: http://evil.example@${host()}`,
      `Origin: http://${host()}/`,
      `Origin: http://${host()}, http://evil.example`,
      `Origin: chrome-extension://${host()}`,
      'Origin: http://127.0.0.1:1',
      'Origin: http://127.0.0.1',
      'Origin: file://',
    ].entries()) {
      // Of these two whatever may be asked for; how the others are written does not depend on that.
      for (const method of place < 2 ? ['POST', 'PUT', 'PATCH', 'DELETE', 'QUERY', 'TRACE'] : ['POST'])
        for (const path of place < 2 ? [`${FIRED}/fire`, FIRED, '/api/v1/nothing', '/healthz'] : [`${FIRED}/fire`])
          expectHarmless(
            `${method} ${path} ${header}`,
            await send(api(), `${method} ${path}`, [...own(), header]),
            [403],
          );
      const among = ['Sec-Fetch-Site: same-origin', `Origin: http://${host()}`].filter(
        (right) => right.split(':')[0] !== header.split(':')[0],
      );
      expectHarmless(`${header}, and a right one`, await fire(header, ...among), [403]);
    }
    const { audit, ...others } = await rowCounts(api().sql);
    expect(others).toEqual({ ...before, audit: undefined });
    // Of a known token, if there are any; few lines stand for many refusals.
    expect(audit).toBeGreaterThanOrEqual(before['audit'] ?? 0);
    expect(audit).toBeLessThan(50);
  });

  test('the dashboard, a bookmark and a program may', async () => {
    for (const headers of [
      [],
      ['Sec-Fetch-Site: same-origin', `Origin: http://${host()}`],
      ['Sec-Fetch-Site: none'],
      [`Origin: HTTP://${host()}`],
    ])
      expect([headers, (await fire(...headers)).status]).toEqual([headers, 202]);
  });

  test('reading is left to the browser, which lets no other page read an answer: no answer allows it to', async () => {
    const headers = [...own(), 'Origin: http://evil.example', 'Sec-Fetch-Site: cross-site'];
    const preflight = ['Access-Control-Request-Method: PUT', 'Access-Control-Request-Headers: authorization'];
    for (const line of [`GET ${FIRED}`, `HEAD ${FIRED}`, `OPTIONS ${FIRED}`, 'OPTIONS /nothing', 'OPTIONS *']) {
      const answer = await send(api(), line, [...headers, ...(line.startsWith('O') ? preflight : [])]);
      expect([line, [200, 404, 405].includes(answer.status)]).toEqual([line, true]);
      const names = [...answer.headers.keys()].filter((name) => name.startsWith('access-control'));
      expect([line, names, answer.headers.get('cross-origin-resource-policy')]).toEqual([line, [], 'same-origin']);
    }
  });
});

test('a proxy that is trusted may name the Host that its client asked for, and no other caller may', async () => {
  const headers = ['Origin: https://cron.example', 'X-Forwarded-Host: cron.example', 'Host: 127.0.0.1:9'];
  const authorization = `Authorization: ${admin.headers.authorization}`;
  const fire = (api: Api, more: string[]) => send(api, `POST ${FIRED}/fire`, [...more, authorization]);
  expect((await fire(guarded, headers)).status).toBe(202);
  for (const other of ['X-Forwarded-Host: cron.example, evil.example', 'X-Forwarded-Host: evil.example'])
    expectHarmless(other, await fire(guarded, [headers[0] ?? '', other, 'Host: x']), [403]);
  const untrusting = await startApi('postgres://nobody:nothing@127.0.0.1:9/none', {
    apiTokens: [admin.known],
  });
  try {
    expectHarmless('no trusted proxy', await fire(untrusting, headers), [403]);
  } finally {
    await untrusting.stop();
  }
});
