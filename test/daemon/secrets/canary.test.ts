// @module-tag attack
// @module-tag long
import postgres from 'postgres';
import { beforeEach, expect, test } from 'vitest';
import { eachTest, databaseOfTest, receiverOfTest } from '../../support/of-test.ts';
import { startCollector } from '../../observability/traces/collector.ts';
import { readyDaemon } from '../../support/daemon.ts';
import { type DaemonHere, daemonHere } from '../../support/daemon-here.ts';
import { SECRET_KEYS } from '../../support/secrets.ts';
import { until } from '../../support/until.ts';

/** Each secret value that is sent holds one of these; in front of each stands a number, so that all are different. */
const CANARY = 'canary-Vq8sZt3xWm5k';
const secretBytes = Buffer.from(`${CANARY}-signs-with-this`);
const SECRET = `whsec_${secretBytes.toString('base64')}`;
/** What is no secret, and so must be found wherever one would be: the search works. */
const CONTROL = 'control-Vq8sZt3xWm5k';

const database = eachTest(databaseOfTest);
const receiver = eachTest(() =>
  receiverOfTest(({ path }, response) => {
    const [, answer] = path.split('/');
    if (answer === 'hang') return;
    response.writeHead(Number(answer) || 200, { 'content-type': 'application/json' });
    response.end('{"executionId":"e"}');
  }),
);
let daemon: DaemonHere;
let seen: string[];

beforeEach(() => {
  seen = [];
});

const TALKING = { LOG_LEVEL: 'trace', FIRELOCK_SECRET_KEYS: SECRET_KEYS, FIRELOCK_TICK_INTERVAL_MS: '50' };

let number = 0;
const canary = () => `${(number += 1)}-${CANARY}`;
const callOf = (url: string) => ({ url, headers: { Authorization: canary() } });
const targetOf = (path: string, more: object = {}) => {
  const url = path.startsWith('http') ? path : `${receiver.url}/${path}`;
  const calls = {
    lookup: callOf(`${receiver.url}/404/lookup`),
    cancel: callOf(`${receiver.url}/500/cancel`),
  };
  const headers = { Authorization: `Bearer ${canary()}`, 'x-b': `${canary()} {{runId}}` };
  return { type: 'http', url, headers, secret: SECRET, ...calls, ...more };
};

async function call(method: string, path: string, body?: unknown): Promise<unknown> {
  const answer = await daemon.call(method, `/api/v1${path}`, body);
  seen.push(JSON.stringify([method, path, answer.body, [...answer.headers]]));
  expect(answer.status, seen.at(-1)).not.toBe(500);
  return answer.body;
}

const ENDS = ['200/ok', '400/no', '503/later', 'hang', 'http://127.0.0.1:1/', 'http://169.254.169.254/', '410/gone'];
const ONCE = { timeoutSeconds: 1, retry: { maxAttempts: 1 } };
const FAR = { cron: '0 12 29 2 *', description: CONTROL };

/** All ways that a run can go. */
async function haveRuns(): Promise<void> {
  for (const [index, path] of ENDS.entries()) {
    await call('PUT', `/schedules/s${index}`, { ...FAR, ...ONCE, target: targetOf(path) });
    await call('POST', `/schedules/s${index}/fire`);
    await call('POST', '/runs', { ...ONCE, key: `k${index}`, target: targetOf(path) });
  }
  const callback = { ...ONCE, timeoutSeconds: 60, completion: 'callback', target: targetOf('200/callback') };
  const { id } = (await call('POST', '/runs', callback)) as { id: string };
  await until(async () => ((await call('GET', `/runs/${id}`)) as { status: string }).status === 'running' || null);
  await call('POST', `/runs/${id}/cancel`);
  const ended = until(async () => {
    const { items } = (await call('GET', '/runs?status=pending,running,waiting')) as { items: unknown[] };
    return items.length === 0 ? true : null;
  });
  await ended;
  await call('POST', '/runs/bulk', { action: 'retry', filter: { status: ['failed'] } });
  await call('POST', '/runs', { ...ONCE, key: 'k0', target: targetOf(ENDS[0] ?? '') });
}

/** Edits, those that change nothing, and those that are refused. */
async function edit(): Promise<void> {
  const target = targetOf('200/ok');
  await call('PUT', '/schedules/s0', { ...FAR, target });
  await call('PATCH', '/schedules/s0', { target: { headers: { Authorization: canary(), Host: canary() } } });
  await call('PATCH', '/schedules/s0', { target: { headers: { Authorization: canary() } } });
  await call('PATCH', '/schedules/s0', { target: { url: 'http://127.0.0.1:2/' } });
  const items = [{ id: 's0', ...FAR, target: targetOf('200/ok') }];
  await call('POST', '/schedules/batch', { items, dryRun: true });
  await call('POST', '/schedules/batch', { items });
  const bad = [`a\n${canary()}`, `{{${CANARY}}}`, ` ${canary()}`, `${canary()}€`];
  const headers = Object.fromEntries(bad.map((value, index) => [`x-${index}`, value]));
  const wrong = [
    { headers },
    { headers: { a: canary().repeat(900) } },
    { headers: { a: [canary()] } },
    { headers: canary() },
    { secret: canary() },
    { secret: [SECRET, canary()] },
    { lookup: { headers } },
  ];
  for (const more of wrong) {
    await call('PUT', '/schedules/s0', { ...FAR, target: targetOf('200/ok', more) });
    await call('PATCH', '/schedules/s0', { target: more });
    await call('POST', '/runs', { target: targetOf('200/ok', more) });
    await call('POST', '/schedules/batch', { items: [{ id: 'x', ...FAR, target: targetOf('x', more) }] });
  }
  for (const text of [`{"target":{"headers":{"A":"${CANARY}"`, `{"target":{"headers":{"A":"${CANARY}\u0000"}}}`]) {
    seen.push(JSON.stringify((await daemon.call('PUT', '/api/v1/schedules/s0', text)).body));
  }
  await call('DELETE', '/schedules/s6');
}

async function haveConnections(): Promise<void> {
  const auths = () => [
    { type: 'bearer', token: canary() },
    { type: 'basic', username: 'u', password: canary() },
    { type: 'oauth2', tokenUrl: 'http://127.0.0.1:1/', clientId: 'c', clientSecret: canary() },
  ];
  const to = (path: string) => ({ url: `${receiver.url}${path}`, description: CONTROL });
  for (const auth of auths()) await call('PUT', '/connections/s0', { ...to('/'), auth, headers: { 'x-a': canary() } });
  const wrong = { ca: canary(), cert: canary(), key: canary() };
  for (const auth of [...auths(), { type: 'bearer', token: `a\n${canary()}` }, { type: canary() }])
    await call('PUT', '/connections/s0', { ...to(`/{{${CONTROL}}}`), auth, tls: wrong, headers: canary() });
  await call('PUT', '/connections/s0', {
    ...to('/moved'),
    headers: { 'x-a': '***' },
    auth: { type: 'bearer', token: '***' },
  });
}

const PERIOD = 'from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z';
const PERIODS = ['/load', '/schedules/s0/occurrences'];

async function readEverything(): Promise<void> {
  const document = (await daemon.call('GET', '/openapi.json')).body as {
    paths: Record<string, { get?: unknown }>;
  };
  const { items } = (await call('GET', '/runs?limit=500')) as { items: { id: string }[] };
  for (const { id } of items) await call('GET', `/runs/${id}`);
  for (const [path, { get }] of Object.entries(document.paths)) {
    if (get === undefined || !path.startsWith('/api/v1/')) continue;
    const asked = path.slice('/api/v1'.length).replace('{id}', 's0');
    await call('GET', PERIODS.includes(asked) ? `${asked}?${PERIOD}` : asked);
  }
  for (const path of ['/openapi.json', '/metrics', '/readyz', '/docs']) {
    seen.push(JSON.stringify((await daemon.call('GET', path)).body));
  }
}

/** Every row of every table, as text. */
async function dump(): Promise<string> {
  const sql = postgres(database.url, { max: 1, onnotice: () => undefined });
  try {
    const tables = await sql<{ name: string }[]>`SELECT quote_ident(table_name) AS name
      FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE'`;
    const rows: string[] = [];
    for (const { name } of tables) {
      for (const { row } of await sql.unsafe<{ row: string }[]>(`SELECT t::text AS row FROM ${name} t`)) rows.push(row);
    }
    return rows.join('\n');
  } finally {
    await sql.end();
  }
}

/** As it is, in hexadecimal, and in base64 wherever it stands among other bytes. */
function spellings(text: string): string[] {
  const inBase64 = [0, 1, 2].map((before) => {
    const encoded = Buffer.from('x'.repeat(before) + text).toString('base64');
    return encoded.slice(before === 0 ? 0 : 4, -4);
  });
  return [text, Buffer.from(text).toString('hex'), ...inBase64];
}

const found = (text: string, inText: string) =>
  spellings(text).filter((one) => inText.toLowerCase().includes(one.toLowerCase()));

test('no header value and no secret is found in any log, answer, metric or table, whatever happens to the runs', async () => {
  daemon = await daemonHere(database.url, TALKING);
  await haveRuns();
  await edit();
  await haveConnections();
  await readEverything();
  await daemon.stop();

  // It was sent all the same, and what is no secret is found.
  const arrived = JSON.stringify(receiver.arrivals.map(({ headers }) => headers));
  expect(found(CANARY, arrived)).not.toEqual([]);
  const paths = receiver.arrivals.map(({ path }) => path);
  expect(paths).toEqual(expect.arrayContaining(['/200/ok', '/hang', '/404/lookup', '/500/cancel', '/410/gone']));
  const tables = await dump();
  const answers = seen.join('\n');
  const lines = daemon.lines.join('\n');
  for (const text of [tables, answers]) expect(found(CONTROL, text)).not.toEqual([]);
  expect(lines).toContain('/api/v1/schedules/s0');

  for (const text of [tables, answers, lines]) expect(found(CANARY, text)).toEqual([]);
  expect(found(CANARY, Buffer.from(SECRET.slice(6), 'base64').toString())).not.toEqual([]);
});

test('no key of an observed job, right or nearly so, is in what the daemon writes, its metrics, its spans or a table', async () => {
  const collector = await startCollector();
  const program = await readyDaemon(database.url, {
    ...TALKING,
    ...{ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, FIRELOCK_SHUTDOWN_SECONDS: '60' },
  });
  const beat = {
    observe: {},
    successWithinSeconds: 3600,
    description: CONTROL,
    target: targetOf('200/fired'),
  };
  const { body } = await program.call('PUT', '/api/v1/schedules/beat', beat);
  const { pingKey: key } = body as { pingKey: string };
  const channel = { type: 'webhook', target: { type: 'http', url: `${receiver.url}/200/told` } };
  expect((await program.call('PUT', '/api/v1/notifiers/bell', { on: ['failed'], channel })).status).toBe(201);
  expect((await program.call('POST', '/api/v1/schedules/beat/fire')).status).toBe(202);
  await receiver.arrived(1);
  // Where its success is written after the failure, that heals what the notifier would be told.
  await until(async () => {
    const { body: fired } = await program.call('GET', '/api/v1/schedules/beat/runs');
    return (fired as { items: { status: string }[] }).items.some(({ status }) => status === 'succeeded') || null;
  });
  expect((await program.call('GET', `/ping/${key}/fail`)).status).toBe(200);
  await receiver.arrived(2);
  const near = [`${key.slice(0, -1)}${key.endsWith('A') ? 'B' : 'A'}`, key.slice(0, -1), `${key}x`];
  for (const one of [key, ...near]) {
    const ends = ['', '/start', '/log?rid=7', '/256', '/%ff', '/', '?create=1'];
    const paths = [
      ...ends.map((end) => `/ping/${one}${end}`),
      ...[`//ping//${one}`, `/%70ing/${one}`, `/PING/${one}`, `/ping?key=${one}`, `/ping%2f${one}`],
      ...[`/api/v1/ping/${one}`, `/api/7/cron/beat/${one}/?status=ok`, `/api/7/cron/beat/${one}?status=no`],
    ];
    for (const path of paths)
      for (const sent of [undefined, 'x'.repeat(200_000)])
        await program.call(sent === undefined ? 'GET' : 'POST', path, sent);
  }
  const { body: runs } = await program.call('GET', '/api/v1/schedules/beat/runs');
  expect((runs as { items: unknown[] }).items.length).toBeGreaterThan(1);
  const metrics = String((await program.call('GET', '/metrics')).body);
  program.signal('SIGTERM');
  await program.exited;
  const said = program.text.out + program.text.err;
  expect(said).toContain('/ping/***/start');
  expect(metrics).toMatch(/^firelock_pings_total\{outcome="unknown"\} [1-9]/m);
  expect(collector.spans()).not.toEqual([]);
  const tables = await dump();
  expect(tables).toContain(CONTROL);
  const arrived = JSON.stringify(receiver.arrivals);
  for (const part of ['/200/fired', '/200/told', '"scheduleId":"beat"']) expect(arrived).toContain(part);
  for (const text of [said, metrics, JSON.stringify(collector.calls), tables, arrived])
    expect(found(key.slice(0, -1), text)).toEqual([]);
});
