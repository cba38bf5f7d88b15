// @module-tag attack
import { Socket } from 'node:net';
import postgres from 'postgres';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { newToken } from '../api/access/support.ts';
import { type Answer, type Api, SCHEDULE, startApi } from '../api/api.ts';
import type { TestDatabase } from '../support/postgres/cluster.ts';
import { createMigratedDatabase } from '../support/postgres/migrated-database.ts';
import { until } from '../support/until.ts';

const eve = newToken('eve', 'admin');
const bob = newToken('bob', 'admin');
const worker = newToken('worker', 'worker');

let api: Api;
let database: TestDatabase;
beforeAll(async () => {
  database = await createMigratedDatabase();
  api = await startApi(database.url, {
    apiTokens: [eve.known, bob.known, worker.known],
    tokenRequestsPerSecond: 10_000,
  });
  expect((await call(bob, 'PUT', 'calendars/days', { dates: [] })).status).toBe(201);
  const schedule = { ...SCHEDULE, exclude: { calendars: ['days'] } };
  expect((await call(bob, 'PUT', 'schedules/there', schedule)).status).toBe(201);
});
afterAll(async () => {
  await api.stop();
  await database.drop();
});

const call = (who: typeof eve, method: string, path: string, body?: unknown): Promise<Answer> =>
  api.call(method, `/api/v1/${path}`, body, who.headers);

const SLOW = [
  ['GET', 'stats'],
  ['GET', 'schedules/there/stats'],
  ['GET', 'verify'],
  ['GET', 'load'],
  ['GET', 'schedules/there/occurrences'],
  ['GET', 'audit'],
  ['POST', 'runs/bulk', { action: 'retry', filter: { status: ['failed'] }, dryRun: true }],
  ['POST', 'schedules/bulk', { action: 'pause', filter: { late: true }, dryRun: true }],
] as const;

test('each slow call uses the connections of background work, each call of a worker those of workers', async () => {
  for (const [method, path, body] of SLOW) {
    api.poolsUsed.clear();
    expect([path, (await call(bob, method, path, body)).status]).toEqual([path, 200]);
    expect([path, ...api.poolsUsed]).toEqual([path, 'background']);
  }
  for (const [path, body] of await promptCalls()) {
    api.poolsUsed.clear();
    expect([path, (await call(bob, 'POST', path, body)).status]).toEqual([path, expect.toBeOneOf([200, 202])]);
    expect([path, ...api.poolsUsed]).toEqual([path, 'api']);
  }
});

test('while twenty slow calls hang, one at a time, workers claim, beat and complete, and a schedule is fired', async () => {
  const prompt = await promptCalls();
  const held = await holdCalendars();
  const hanging = Array.from({ length: 20 }, () => call(eve, 'GET', 'load'));
  // These are no slow calls, but they wait too.
  const lists = Array.from({ length: 10 }, (_, index) => call([eve, bob][index % 2] ?? eve, 'GET', 'calendars'));
  await until(async () => ((await held.waiting()) === 3 ? true : null));
  for (const [path, body] of prompt) {
    const { status } = await call(bob, 'POST', path, body);
    expect([path, status]).toEqual([path, expect.toBeOneOf([200, 202])]);
  }
  // One slow call and two of the lists: never more.
  expect(await held.waiting()).toBe(3);
  await held.release();
  expect(new Set((await Promise.all(hanging)).map(({ status }) => status))).toEqual(new Set([200]));
  await Promise.all(lists);
});

test('reading calls of one caller have half of the connections: while fifty of them hang, another caller is answered', async () => {
  const held = await holdCalendars();
  const searches = Array.from({ length: 50 }, () => call(eve, 'GET', 'calendars'));
  await until(async () => ((await held.waiting()) > 0 ? true : null));
  for (const path of ['schedules?q=there', 'runs', 'limits'])
    expect([path, (await call(bob, 'GET', path)).status]).toEqual([path, 200]);
  // A change of the same caller does not wait for what it only reads.
  expect((await call(eve, 'PUT', 'limits/mine', { maxRunning: 1 })).status).toBe(201);
  expect(await held.waiting()).toBe(1);
  await held.release();
  expect(new Set((await Promise.all(searches)).map(({ status }) => status))).toEqual(new Set([200]));
});

test('slow calls of one caller beyond fifty are refused, and delay another’s by one call', async () => {
  const held = await holdCalendars();
  const answered: string[] = [];
  const ask = (who: typeof eve) =>
    call(who, 'GET', 'load').then(({ status, headers }) => {
      answered.push(`${who.known.name} ${status}${status === 503 ? ` ${headers.get('retry-after')}` : ''}`);
    });
  const asked = Array.from({ length: 53 }, () => ask(eve));
  await until(() => (answered.length === 2 ? true : null));
  expect(answered.splice(0)).toEqual(['eve 503 5', 'eve 503 5']);
  await begin(bob, 'load', (status) => answered.push(`bob ${status}`));
  await held.release();
  await Promise.all(asked);
  await until(() => (answered.length === 52 ? true : null));
  // One was under way, and the line of eve may have had the next turn; the rest is the way of the answers.
  expect(answered.indexOf('bob 200')).toBeLessThan(10);
});

/** What workers and callbacks call, in an order in which each is possible; what they need is there afterwards. */
async function promptCalls(): Promise<[path: string, body: unknown][]> {
  const target = { type: 'pull', queue: 'work' };
  const { body } = await call(bob, 'POST', 'runs', { target });
  const id = body['id'] as unknown as string;
  const report = { attempt: 1, workerId: 'w' };
  return [
    ['queues/work/claim', { workerId: 'w' }],
    [`runs/${id}/heartbeat`, report],
    [`runs/${id}/complete`, { status: 'succeeded', ...report }],
    ['schedules/there/fire', {}],
  ];
}

/** Statements that read calendars wait, until they are released. */
async function holdCalendars() {
  const sql = postgres(database.url, { max: 1, prepare: false, onnotice: () => undefined });
  onTestFinished(() => sql.end());
  await sql`BEGIN`;
  await sql`LOCK TABLE calendars IN ACCESS EXCLUSIVE MODE`;
  return {
    /** How many statements wait for it. */
    waiting: async () =>
      (await sql`SELECT FROM pg_locks WHERE relation = 'calendars'::regclass AND NOT granted`).length,
    release: () => sql`COMMIT`,
  };
}

/** Sends it, and resolves when the server has read it. */
async function begin({ headers }: typeof eve, path: string, onAnswer: (status: number) => void): Promise<void> {
  const { hostname, port } = new URL(api.url);
  const socket = new Socket().connect(Number(port), hostname);
  onTestFinished(() => {
    socket.destroy();
  });
  const lines = ` HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: ${headers.authorization}\r\n\r\n`;
  let received = 0;
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    for (const [, status] of chunk.matchAll(/HTTP\/1\.1 (\d+)/g)) if ((received += 1) === 2) onAnswer(Number(status));
  });
  // Both come in one piece, so the answer to the first one shows that the second one has come.
  socket.write(`GET /api/v1/me${lines}GET /api/v1/${path}${lines}`);
  await until(() => (received > 0 ? true : null));
}
