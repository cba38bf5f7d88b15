import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Api, startApi } from '../../api/api.ts';
import { firelock } from '../cli.ts';

let full: Api;
let empty: Api;
let folder: string;
beforeAll(async () => {
  const options = { takesSecretFiles: true };
  [full, empty] = await Promise.all([startApi(undefined, options), startApi(undefined, options)]);
  folder = await mkdtemp(join(tmpdir(), 'firelock-file-'));
  await fill();
});
afterAll(async () => {
  await full.stop();
  await empty.stop();
  await rm(folder, { recursive: true });
});

const CA = readFileSync(
  join(import.meta.dirname, '..', '..', 'postgres', 'connection', 'fixtures', 'ca.cert.pem'),
  'utf8',
);
const pull = { type: 'pull', queue: 'q' };

async function put(path: string, body: unknown): Promise<void> {
  const { status, text } = await full.call('PUT', `/api/v1/${path}`, body);
  expect([path, status, status < 300 ? '' : text]).toEqual([path, 201, '']);
}

async function fill(): Promise<void> {
  await put('limits/few', { description: 'two: #1', maxRunning: 2 });
  await put('connections/files', {
    url: 'https://example.com/api',
    description: 'yes: #',
    headers: { 'X-Key': { file: 'team/key' } },
    auth: {
      type: 'oauth2',
      tokenUrl: 'https://example.com/t',
      clientId: 'me',
      clientSecret: { file: 'secret' },
    },
    tls: { ca: CA },
  });
  await put('schedules/connected', {
    everySeconds: 60,
    target: { type: 'http', connection: 'files', url: '/a?b={{runId}}', lookup: { url: '' } },
  });
  // By its id before its fallback.
  const target = { type: 'http', connection: 'files', url: '/hook', headers: {} };
  await put('notifiers/last', { channel: { type: 'webhook', target }, remindSeconds: null, enabled: false });
  await put('notifiers/chat', {
    channel: { type: 'slack', target },
    filter: { ids: ['b-*'] },
    fallback: 'last',
  });
  await put('calendars/closed', { dates: ['2090-12-24', '2090-12-31/2091-01-02'] });
  await put('schedules/minutely', { everySeconds: 60, target: pull, limit: 'few', priority: 'high' });
  await put('schedules/b-parent', {
    cron: ['0 2 * * *', '30 4 * * SUN'],
    timezone: 'Europe/Berlin',
    target: pull,
  });
  // By their ids before what they follow.
  await put('schedules/a-child', { after: { scheduleId: 'b-parent', on: ['failed', 'late'] }, target: pull });
  await put('schedules/a-grandchild', { after: { scheduleId: 'a-child' }, target: pull });
  await put('schedules/all', { after: { scheduleId: '*', on: ['failed'] }, target: pull });
  await put('schedules/many', {
    at: '2090-06-01T00:00:00Z',
    startAt: '2090-01-01T00:00:00Z',
    exclude: { dates: ['2090-05-01'], calendars: ['closed'] },
    description: 'yes: # "no"\n- two lines',
    target: {
      type: 'http',
      url: 'https://example.com/{{runId}}?a=b#c',
      lookup: { url: 'https://example.com/l' },
      cancel: { url: 'https://example.com/c', method: 'DELETE' },
    },
    enabled: false,
    pauseReason: 'null',
    pauseUntil: '2090-02-01T00:00:00Z',
    retry: { maxAttempts: 1 },
    labels: { 'a.b/c': 'true', 'firelock.set': 'here', 'x y': '- {' },
    successWithinSeconds: 60,
    expect: {
      startWithinSeconds: 60,
      result: [
        { pointer: '/rows', min: 1 },
        { pointer: '/x', equals: null },
      ],
    },
    delivery: 'atMostOnce',
    overlap: 'queue',
  });
  const payloads = [
    '{"n": 1.0,  "b":12345678901234567890, "s": "a: #\\u2028 \\ud83d\\ude00"}',
    '"text"',
    '1e400',
    '[\n 1,\r\n\t" \\n "]',
  ];
  for (const [index, payload] of payloads.entries()) {
    const body = `{"everySeconds": 3600, "target": {"type":"pull","queue":"q"}, "payload":${payload}}`;
    await full.call('PUT', `/api/v1/schedules/payload-${index}`, body);
  }
  await full.sql`UPDATE schedules SET next_occurrence_at = NULL, next_fire_at = NULL WHERE id = 'payload-1'`;
}

async function exportOf(api: Api, ...args: string[]) {
  const { code, out, err } = await firelock(['export', ...args], { url: api.url });
  expect(code).toBe(0);
  return { out, err };
}

async function applied(api: Api, text: string): Promise<[code: number, said: string]> {
  const path = join(folder, 'file');
  await writeFile(path, text);
  const { code, out, err } = await firelock(['apply', path, '--no-json'], { url: api.url });
  return [code, `${out.trimEnd().split('\n').at(-1) ?? ''}${err}`];
}

/** All that a client may set. */
async function definitions(api: Api): Promise<unknown> {
  const readOnly = 'nextFireAt lastFireAt version createdAt updatedAt running waiting nextFiresMoved'.split(' ');
  const lists = await Promise.all(
    ['schedules?limit=500', 'limits', 'calendars', 'connections', 'notifiers'].map((path) =>
      api.call('GET', `/api/v1/${path}`),
    ),
  );
  return lists.map(({ text }) => {
    const { items } = JSON.parse(text, (key, value: unknown, { source }) =>
      readOnly.includes(key) ? undefined : typeof value === 'number' ? source : value,
    ) as { items: unknown[] };
    return items;
  });
}

test('an export that is applied where it comes from changes nothing, and elsewhere it restores all but what is over', async () => {
  for (const format of ['yaml', 'json']) {
    const { out, err } = await exportOf(full, '--format', format);
    expect(await applied(full, out)).toEqual([0, '0 created, 0 changed, 0 deleted, 15 unchanged']);
    expect(err).toMatch(/left out: 1 schedules that are over, which/);
    expect(await applied(empty, out)).toEqual(
      format === 'yaml'
        ? [2, '15 created, 0 changed, 0 deleted, 0 unchanged']
        : [0, '0 created, 0 changed, 0 deleted, 15 unchanged'],
    );
  }
  await full.sql`DELETE FROM schedules WHERE id = 'payload-1'`;
  expect(await definitions(empty)).toEqual(await definitions(full));
  const restored = await empty.call('GET', '/api/v1/schedules/payload-0');
  expect(restored.text).toContain('"payload":{"n": 1.0,  "b":12345678901234567890,');
});

test('a schedule stands after the one that it follows, and a set can be exported alone', async () => {
  const { out } = await exportOf(full);
  const order = ['id: b-parent', 'id: a-child', 'id: a-grandchild'].map((id) => out.indexOf(id));
  expect(order).toEqual([...order].sort((a, b) => a - b));
  expect(out).not.toMatch(/nextFireAt|version|status/);
  const one = await exportOf(full, '--set', 'here');
  expect(one.out).toMatch(/^set: "here"$/m);
  expect(one.out.match(/^ {2}- id: .*$/gm)).toEqual([
    ...['  - id: few', '  - id: closed', '  - id: files', '  - id: chat', '  - id: last', '  - id: many'],
  ]);
  expect(one.out).not.toContain('firelock.set');
});

test('an export has no secrets: the server that has them keeps them, and another one asks for them by the line', async () => {
  const target = { type: 'http', url: 'https://example.com/', headers: { authorization: 'Bearer x' } };
  await put('connections/secret', { url: 'https://example.com/', auth: { type: 'bearer', token: 'canary' } });
  await put('schedules/secret', { everySeconds: 60, target });
  const { out } = await exportOf(full);
  expect(out).toContain('authorization: "***"');
  expect(out).toMatch(/token: "\*{3}"$/m);
  expect(out).not.toMatch(/Bearer x|canary/);
  expect(await applied(full, out)).toEqual([0, expect.any(String)]);
  const [code, said] = await applied(empty, out);
  expect(code).toBe(1);
  expect(said).toMatch(/file:\d+: schedule secret, \/target\/headers\/authorization: is "\*\*\*"/);
  expect(said).toMatch(/file:\d+: connection secret, \/auth\/token: is "\*\*\*"/);
});
