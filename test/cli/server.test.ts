import type { RequestListener } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { mergePatch, RawJson, stringify } from '../../src/api/http/json/raw-json.ts';
import { parseKeepingDigits } from '../../src/core/json-text.ts';
import { over, treeAt } from '../../src/cli/schedules/definition-options.ts';
import { serveHttp } from '../support/loopback.ts';
import { firelock } from './cli.ts';

/** A server that answers as it is told, whatever it is asked. */
async function answering(listener: RequestListener): Promise<string> {
  const server = await serveHttp(listener);
  onTestFinished(() => server.close());
  return server.url;
}

const problem =
  (status: number, body: object): RequestListener =>
  (_request, response) => {
    response.writeHead(status, { 'content-type': 'application/problem+json' }).end(JSON.stringify(body));
  };

test('numbers keep their digits, and JSON text its bytes', () => {
  const text = '{"a":12345678901234567890.10,"b":[1e400,-0,1.50,7],"c":"1.0"}';
  expect(JSON.stringify(parseKeepingDigits(text))).toBe(text);
  expect(stringify(parseKeepingDigits(text))).toBe(text);
  const body = { id: 'x', left: undefined, payload: new RawJson('{ "n": 1.0 }'), list: [null, 'é', true] };
  expect(stringify(body)).toBe('{"id":"x","payload":{ "n": 1.0 },"list":[null,"é",true]}');
});

test('patches are merged with each other, and null removes a member when the patch is applied', () => {
  const patch = [treeAt(['a', 'b'], 1), treeAt(['a', 'c'], null), treeAt(['__proto__', 'x'], 2)].reduce(over);
  expect(stringify(patch)).toBe('{"a":{"b":1,"c":null},"__proto__":{"x":2}}');
  expect(mergePatch({ a: { b: 0, c: 3, d: 4 }, e: 5 }, { a: { b: 1, c: null }, e: null, f: [1] })).toEqual({
    a: { b: 1, d: 4 },
    f: [1],
  });
});

test('the exit code and the message say how a call ended', async () => {
  const asked = async (listener: RequestListener, env: Record<string, string> = {}) => {
    const { code, out, err } = await firelock('me', { url: await answering(listener), env });
    return [code, out, err.replace(/http:\/\/127\.0\.0\.1:\d+/g, 'URL')];
  };
  const errors = [
    { path: '/cron', message: 'is wrong' },
    { path: '', message: 'has too much' },
  ];
  expect(await asked(problem(400, { title: 'Bad Request', detail: '2 faults in the request', errors }))).toEqual([
    1,
    '',
    'firelock: 2 faults in the request\n  /cron: is wrong\n  body: has too much\n',
  ]);
  expect(await asked(problem(401, { detail: 'no token' }))).toEqual([
    5,
    '',
    'firelock: the server requires a token; set FIRELOCK_TOKEN: no token\n',
  ]);
  expect(await asked(problem(401, { detail: 'bad' }), { FIRELOCK_TOKEN: 'flk_x' })).toEqual([
    5,
    '',
    'firelock: the server does not accept the token in FIRELOCK_TOKEN: bad\n',
  ]);
  expect((await asked(problem(403, { detail: 'needs admin' })))[0]).toBe(5);
  expect((await asked(problem(404, { detail: 'nothing' })))[0]).toBe(3);
  expect(await asked(problem(404, { detail: 'there is nothing at this path' }))).toEqual([
    1,
    '',
    'firelock: there is nothing at this path; check FIRELOCK_URL, and the base path in it\n',
  ]);
  expect((await asked(problem(409, { detail: 'not now' })))[0]).toBe(1);
  expect((await asked(problem(503, { detail: 'no database' })))[0]).toBe(4);
  expect(await asked((_request, response) => response.writeHead(502).end('<html>'))).toEqual([
    4,
    '',
    'firelock: the server answered 502\n',
  ]);
  expect(await asked((_request, response) => response.end('<html>'))).toEqual([
    1,
    '',
    'firelock: the server at URL is not firelock; check FIRELOCK_URL\n',
  ]);
  expect(await asked((_request, response) => response.writeHead(302, { location: '/x' }).end())).toEqual([
    1,
    '',
    'firelock: URL redirects to /x; set FIRELOCK_URL to that address\n',
  ]);
  expect(await asked((request) => request.destroy())).toEqual([
    4,
    '',
    expect.stringMatching(/^firelock: cannot reach URL: .+; check FIRELOCK_URL\n$/),
  ]);
});

test('the token, the base path and the version are sent; nothing is sent to a URL that is no server', async () => {
  const seen: unknown[] = [];
  const url = await answering(({ url, headers }, response) => {
    seen.push([url, headers.authorization, headers['user-agent']]);
    response.end('{"name":"ci","role":"admin"}');
  });
  for (const path of ['', '/', '/cron/', '/cron/api/v1'])
    expect((await firelock('me', { url: url + path, env: { FIRELOCK_TOKEN: ' flk_x\n' } })).code).toBe(0);
  const from = ['Bearer flk_x', 'firelock-cli/0.0.0-test'];
  expect(seen).toEqual([
    ['/api/v1/me', ...from],
    ['/api/v1/me', ...from],
    ['/cron/api/v1/me', ...from],
    ['/cron/api/v1/me', ...from],
  ]);
  for (const [env, said] of [
    [{ FIRELOCK_URL: 'cron.example.com' }, /FIRELOCK_URL is not the URL of a server/],
    [{ FIRELOCK_URL: 'ftp://x' }, /FIRELOCK_URL is not/],
    [{ FIRELOCK_URL: 'http://me:swordfish@x' }, /must not contain a user or a password/],
    [{ FIRELOCK_TOKEN: 'sword\nfish' }, /FIRELOCK_TOKEN contains/],
  ] as const) {
    const { code, err } = await firelock('me', { env });
    expect([code, err]).toEqual([64, expect.stringMatching(said)]);
    expect(err).not.toContain('fish');
  }
});

test('Ctrl-C ends a call that hangs', async () => {
  const controller = new AbortController();
  const url = await answering(() => controller.abort());
  const { code, out, err } = await firelock('me', { url, signal: controller.signal });
  expect([code, out, err]).toEqual([130, '', 'firelock: interrupted; the server may have carried out the request\n']);
});

test('the audit is read with its filters, page by page', async () => {
  const seen: (string | undefined)[] = [];
  const entry = { by: 'ci', role: 'admin', action: 'schedule.update', outcome: 'done', detail: { a: 1 } };
  const url = await answering((request, response) => {
    seen.push(request.url);
    const isFirst = !request.url?.includes('cursor');
    const items = [{ ...entry, at: '2030-01-01T00:00:00.000Z', subject: isFirst ? 'one' : 'two' }];
    response.end(JSON.stringify({ items, nextCursor: isFirst ? 'next' : null }));
  });
  const args = ['audit', '--by', 'ci', '--action', 'schedule.update', '--schedule', 'x', '--from', '-1d'];
  const { out } = await firelock([...args, '--all'], { url, terminal: 100, env: { NO_COLOR: '1' } });
  expect(seen).toEqual(
    ['limit=500', 'limit=500&cursor=next'].map(
      (page) => `/api/v1/audit?by=ci&action=schedule.update&scheduleId=x&from=2029-12-31T00%3A00%3A00.000Z&${page}`,
    ),
  );
  expect(out.split('\n').slice(0, 3)).toEqual([
    expect.stringMatching(/^AT +BY +ACTION +SUBJECT +OUTCOME +DETAIL$/),
    expect.stringMatching(/^01-01 00:00:00Z +ci +schedule\.update +one +done +\{"a":1\}$/),
    expect.stringMatching(/ two /),
  ]);
});
