import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  type Firelock,
  JsonText,
  Problem,
  createClient,
  eachItem,
  newIdempotencyKey,
} from '../../clients/typescript/src/index.ts';
import { newToken } from '../api/access/support.ts';
import { type Api, startApi } from '../api/api.ts';
import { startReceiver } from '../support/receiver.ts';

const PAYLOAD = '{"cents":123456789012345678901.50,"e":1E400,"deep":[{"payload":0.10}]}';
const SCHEDULE = { cron: '0 12 29 2 *', target: { type: 'pull' as const, queue: 'q' } };
const token = newToken('client', 'admin');

let api: Api;
let firelock: Firelock;
beforeAll(async () => {
  api = await startApi(undefined, { basePath: '/cron', apiTokens: [token.known] });
  firelock = createClient({ url: `${api.url}/cron/`, token: () => Promise.resolve(token.secret) });
});
afterAll(() => api.stop());

/** What a call that fails throws. */
async function problemOf(call: Promise<unknown>): Promise<Problem> {
  const error = await call.then(
    () => null,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof Problem)) throw new Error(`threw ${String(error)}`);
  return error;
}

test('payloads keep their digits from one hand to the next, wherever they are read', async () => {
  const made = await firelock.putSchedule({ id: 'a', body: { ...SCHEDULE, payload: new JsonText(PAYLOAD) } });
  const read = await firelock.getSchedule({ id: 'a' });
  const statuses: number[] = [];
  const onAnswer = ({ status }: { status: number }) => void statuses.push(status);
  const same = await firelock.putSchedule({ id: 'a', ifMatch: read.version, body: read }, { onAnswer });
  expect([made.version, same.version, statuses]).toEqual([1, 1, [200]]);

  await firelock.fireSchedule({ id: 'a' });
  await firelock.createRun({ body: { target: SCHEDULE.target, payload: read.payload } });
  const { items: claimed } = await firelock.claimRuns({ queue: 'q', body: { workerId: 'w', max: 5 } });
  const { items: runs } = await firelock.listRuns();
  const { items: versions } = await firelock.listVersions({ id: 'a' });
  const { items: schedules } = await firelock.listSchedules();
  const whole = await firelock.getRun({ id: claimed[0]?.id ?? '' });
  const texts = [...claimed, ...runs, ...schedules, whole, ...versions.map(({ schedule }) => schedule)];
  expect(texts).toHaveLength(7);
  expect(new Set(texts.map(({ payload }) => payload.text))).toEqual(new Set([PAYLOAD]));

  const body = { dryRun: true, items: [{ ...read, payload: { cents: 123456789012345678902n } }] };
  const { changes } = await firelock.putSchedules({ body });
  expect(changes?.[0]?.fields).toEqual([
    {
      path: '/payload',
      before: new JsonText(PAYLOAD),
      after: new JsonText('{"cents":123456789012345678902}'),
    },
  ]);
});

test('results keep their digits as well', async () => {
  const { id } = await firelock.createRun({ body: { target: { type: 'pull', queue: 'results' } } });
  await firelock.claimRuns({ queue: 'results', body: { workerId: 'w' } });
  await firelock.heartbeatRun({ id, body: { attempt: 1, workerId: 'w', progress: 0.5 } });
  const result = new JsonText('{"rows":12345678901234567890}');
  const done = await firelock.completeRun({
    id,
    body: { status: 'succeeded', attempt: 1, workerId: 'w', result },
  });
  expect(done).toMatchObject({ status: 'succeeded', result: { body: result.text } });
});

test('a problem names every fault, and says whether it may pass', async () => {
  const body = { cron: 'never', target: { type: 'pull' as const, queue: '' } };
  const wrong = await problemOf(firelock.putSchedule({ id: 'wrong', body }));
  expect(wrong).toMatchObject({ status: 400, title: 'Bad Request', mayPass: false, run: null });
  expect(wrong.faults.map(({ path }) => path).sort()).toEqual(['/cron', '/target/queue']);
  expect(wrong.message).toContain('/target/queue');
  const away = createClient({ url: `${api.url}/cron` });
  expect(await problemOf(away.getMe())).toMatchObject({ status: 401, faults: [] });
  expect((await problemOf(firelock.getSchedule({ id: 'nobody' }))).status).toBe(404);

  const { id } = await firelock.createRun({ body: { target: SCHEDULE.target } });
  await firelock.cancelRun({ id });
  const ended = await problemOf(firelock.heartbeatRun({ id, body: { attempt: 1 } }));
  expect(ended).toMatchObject({ status: 409, run: { status: 'cancelled' } });
});

test('conditions, keys and pages', async () => {
  await firelock.putSchedule({ id: 'b', ifNoneMatch: '*', body: SCHEDULE });
  const exists = firelock.putSchedule({ id: 'b', ifNoneMatch: '*', body: SCHEDULE });
  expect((await problemOf(exists)).status).toBe(412);
  expect((await problemOf(firelock.deleteSchedule({ id: 'b', ifMatch: 7 }))).status).toBe(412);
  const idempotencyKey = newIdempotencyKey();
  const [one, again] = [
    await firelock.fireSchedule({ id: 'b', idempotencyKey, body: { payload: null } }),
    await firelock.fireSchedule({ id: 'b', idempotencyKey, body: { payload: null } }),
  ];
  expect(again.id).toBe(one.id);
  await firelock.fireSchedule({ id: 'b', idempotencyKey: newIdempotencyKey() });
  const found: string[] = [];
  for await (const { id } of eachItem(firelock.listRuns, { scheduleId: 'b', limit: 1 })) found.push(id);
  expect(found).toHaveLength(2);
  expect(found).toContain(one.id);
  await expect(firelock.deleteSchedule({ id: 'b' })).resolves.toBeUndefined();
});

test('what is not under /api/v1 is answered too, also where the instance is not ready', async () => {
  expect(await firelock.getHealth()).toEqual({ status: 'ok' });
  expect(await firelock.getMetrics()).toBe('up 1\n');
  expect((await firelock.getReadiness()).status).toBe('ready');
  const before = { ...api.readiness };
  Object.assign(api.readiness, { status: 'unavailable' });
  try {
    expect((await firelock.getReadiness()).status).toBe('unavailable');
  } finally {
    Object.assign(api.readiness, before);
  }
});

test('text that is no JSON does not become another field', async () => {
  const payload = new JsonText('1,"enabled":false');
  await expect(firelock.putSchedule({ id: 'c', body: { ...SCHEDULE, payload } })).rejects.toThrow(SyntaxError);
});

describe('what goes over the wire', () => {
  interface Document {
    paths: Record<string, Record<string, { operationId: string; parameters?: { in: string; name: string }[] }>>;
  }
  const file = join(import.meta.dirname, '..', '..', 'openapi', 'openapi.json');
  const { paths } = JSON.parse(readFileSync(file, 'utf8')) as Document;
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      ...operation,
      path,
      method: method.toUpperCase(),
    })),
  );
  const names: Record<string, string> = {
    'If-Match': 'ifMatch',
    'If-None-Match': 'ifNoneMatch',
    'Idempotency-Key': 'idempotencyKey',
  };

  test('every operation of the document is a method, and each of its parameters arrives', async () => {
    const sent: [string, string, Headers][] = [];
    const recording = createClient({
      url: 'https://ops.example/cron/',
      fetch: (input, init) => {
        sent.push([init?.method ?? '', input as string, new Headers(init?.headers)]);
        return Promise.resolve(new Response(null, { status: 204 }));
      },
    }) as unknown as Record<string, (input: object) => Promise<void>>;
    expect(Object.keys(recording).sort()).toEqual(operations.map(({ operationId }) => operationId).sort());
    for (const { operationId, path, method, parameters = [] } of operations) {
      const input = Object.fromEntries(parameters.map(({ name }) => [names[name] ?? name, `${name} é/?`]));
      await recording[operationId]?.(input);
      const [usedMethod, usedUrl, headers] = sent.at(-1) ?? ['', 'https://none', new Headers()];
      const of = (place: string) => parameters.filter((parameter) => parameter.in === place).map(({ name }) => name);
      const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(`${name} é/?`));
      const url = new URL(usedUrl);
      expect([usedMethod, url.pathname]).toEqual([method, `/cron${filled}`]);
      expect([...url.searchParams]).toEqual(of('query').map((name) => [name, `${name} é/?`]));
      expect(of('header').map((name) => headers.get(name))).toEqual(of('header').map((name) => `${name} é/?`));
    }
  });

  test('an id of dots, and none, would be another path', async () => {
    for (const id of ['', '.', '..', undefined as unknown as string]) {
      await expect(firelock.deleteSchedule({ id })).rejects.toThrow('id is missing');
    }
  });

  test('a call is made once, whatever becomes of it, and ends when it is told to', async () => {
    const proxy = await startReceiver(({ path }, response) => {
      if (path === '/healthz') response.writeHead(302, { location: 'https://other.example/' }).end();
      if (path === '/readyz') response.writeHead(502, { 'content-type': 'text/html' }).end('<h1>Bad gateway</h1>');
      if (path === '/api/v1/stats') response.writeHead(503, { 'retry-after': '7' }).end();
    });
    try {
      const client = createClient({ url: proxy.url });
      const redirected = await problemOf(client.getHealth());
      expect([redirected.status, redirected.detail]).toEqual([302, expect.stringContaining('https://other.example/')]);
      const gateway = await problemOf(client.getReadiness());
      expect(gateway).toMatchObject({ status: 502, mayPass: true, detail: '<h1>Bad gateway</h1>' });
      expect(await problemOf(client.getStats())).toMatchObject({
        status: 503,
        mayPass: true,
        retryAfterSeconds: 7,
      });
      await expect(client.getMe({}, { timeoutMs: 1 })).rejects.toThrow(/timeout/i);
      await expect(client.getMe({}, { signal: AbortSignal.abort(new Error('enough')) })).rejects.toThrow('enough');
      const asked = proxy.arrivals.map(({ path }) => path).filter((path) => path !== '/api/v1/me');
      expect(asked).toEqual(['/healthz', '/readyz', '/api/v1/stats']);
    } finally {
      await proxy.close();
    }
  });

  test.each(['ftp://a', 'https://a/?x=1', 'https://u:p@a/', '/cron'])('%s is no URL of a daemon', (url) => {
    expect(() => createClient({ url })).toThrow(TypeError);
  });
});
