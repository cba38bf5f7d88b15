// @module-tag long
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { RequestListener } from 'node:http';
import { createServer } from 'node:https';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createAuthority } from '../support/certificates.ts';
import { type DaemonHere, daemonHere } from '../support/daemon-here.ts';
import { listenOnLoopback, serveHttp, withBody } from '../support/loopback.ts';
import { createMigratedDatabase } from '../support/postgres/migrated-database.ts';
import { SECRET_KEYS } from '../support/secrets.ts';
import { until } from '../support/until.ts';
import {
  PRESIGNED,
  RECIPES,
  type Recipe,
  type RecipeAnswer,
  SECRET_FILES,
  type Sent,
  type SentRun,
} from './recipe-cases.ts';
import { runPage } from './shell.ts';

const KUBERNETES = 'https://kubernetes.default.svc';

interface Run extends SentRun {
  status: string;
  executionId: string | null;
  attemptLog: unknown[];
}

test('each recipe sends what its system wants, byte for byte, and takes its answers for what they mean', async () => {
  const authority = createAuthority();
  const systems = await startSystems(authority.issue('kubernetes'));
  const daemon = await startDaemon({ ...SECRET_FILES, 'kubernetes/ca.crt': authority.ca });
  systems.answer(PRESIGNED.origin, PRESIGNED.answers[0]);
  const said = await runPage('docs/recipes.md', { url: daemon.url, instead: systems.instead });

  const { body } = await daemon.call('GET', '/api/v1/schedules');
  const ids = (body as { items: { id: string }[] }).items.map(({ id }) => id);
  expect(ids.sort()).toEqual(Object.keys(RECIPES).sort());

  const expectRun = async (id: string, recipe: Recipe, answer: RecipeAnswer | undefined, attempts = 1) => {
    const run = await judged(daemon, id, attempts);
    expect([id, run]).toMatchObject([id, { status: answer?.status }]);
    expect(systems.sent.get(id)).toEqual(recipe.request(run));
    return run;
  };
  const fire = async (schedule: string) => {
    const fired = await daemon.call('POST', `/api/v1/schedules/${schedule}/fire`);
    return (fired.body as Run).id;
  };
  await Promise.all(
    Object.entries(RECIPES).map(async ([schedule, recipe]) => {
      for (const answer of recipe.answers) {
        systems.answer(recipe.origin, answer);
        const run = await expectRun(await fire(schedule), recipe, answer);
        if (answer.headers?.['location'] !== undefined) expect(run.executionId).toBe(answer.headers['location']);
      }
    }),
  );

  const [{ id }] = said.at(-1)?.answers as [Run];
  await expectRun(id, PRESIGNED, PRESIGNED.answers[0]);
  systems.answer(PRESIGNED.origin, PRESIGNED.answers[1]);
  await daemon.call('POST', `/api/v1/runs/${id}/retry`);
  await expectRun(id, PRESIGNED, PRESIGNED.answers[1], 2);
});

/** A run once it has had so many attempts. */
function judged(daemon: DaemonHere, id: string, attempts: number): Promise<Run> {
  return until(async () => {
    const { body } = await daemon.call('GET', `/api/v1/runs/${id}`);
    const run = body as Run;
    return run.attemptLog.length >= attempts ? run : null;
  });
}

async function startDaemon(files: Record<string, string>): Promise<DaemonHere> {
  const secrets = await mkdtemp(join(tmpdir(), 'firelock-secrets-'));
  onTestFinished(() => rm(secrets, { recursive: true }));
  for (const [name, text] of Object.entries(files)) {
    await mkdir(join(secrets, dirname(name)), { recursive: true });
    await writeFile(join(secrets, name), text);
  }
  const database = await createMigratedDatabase();
  onTestFinished(() => database.drop());
  return daemonHere(database.url, {
    FIRELOCK_SECRET_KEYS: SECRET_KEYS,
    FIRELOCK_SECRETS_DIR: secrets,
  });
}

/** Stands for all systems of the page. Each has the name of its host as the first part of its paths. */
async function startSystems(kubernetes: { cert: string; key: string }) {
  const answers = new Map<string, RecipeAnswer>();
  const sent = new Map<string, Sent>();
  const listener: RequestListener = withBody((request, body, response) => {
    const { method = '', url = '', headers } = request;
    const [, host = '', path = ''] = /^\/([^/]+)(\/.*)$/.exec(url) ?? [];
    const own = Object.entries(headers).filter(([name]) => !OF_EVERY_REQUEST.test(name));
    sent.set(String(headers['webhook-id']), {
      method,
      path,
      headers: Object.fromEntries(own) as Record<string, string>,
      body,
    });
    const answer = answers.get(host);
    response.writeHead(answer?.statusCode ?? 500, answer?.headers).end(answer?.body);
  });
  const plain = await serveHttp(listener);
  onTestFinished(() => plain.close());
  const secure = createServer(kubernetes, listener);
  const port = await listenOnLoopback(secure);
  onTestFinished(() => {
    secure.close();
    secure.closeAllConnections();
  });
  const hostOf = (origin: string) => new URL(origin).host;
  const origins = [...Object.values(RECIPES), PRESIGNED].map(({ origin }) => origin);
  const hereOf = (origin: string) => (origin === KUBERNETES ? `https://127.0.0.1:${port}` : plain.url);
  return {
    sent,
    instead: Object.fromEntries(origins.map((origin) => [origin, `${hereOf(origin)}/${hostOf(origin)}`])),
    answer: (origin: string, answer: RecipeAnswer | undefined) => {
      if (answer !== undefined) answers.set(hostOf(origin), answer);
    },
  };
}

const OF_EVERY_REQUEST =
  /^(?:host|connection|content-length|user-agent|traceparent|idempotency-key|(?:webhook|ce)-.*)$/;
