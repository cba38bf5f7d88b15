// @module-tag long
import { execFile, spawnSync } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type TestContext, expect, onTestFinished, test } from 'vitest';
import { freePort } from '../support/loopback.ts';
import { LONG } from '../support/runner/long.ts';
import { SECRET_KEYS } from '../support/secrets.ts';
import { runIdOf, secretOf, signedHandoff } from '../support/signed.ts';
import { until } from '../support/until.ts';
import type { Program } from '../support/programs.ts';
import { type AnsweredRun, runExample, runOnce, sharedDaemon } from './program.ts';

const root = join(import.meta.dirname, '..', '..');
const daemon = sharedDaemon({ FIRELOCK_SECRET_KEYS: SECRET_KEYS });
const [FIRST, SECOND, OTHER] = [secretOf(1), secretOf(2), secretOf(3)];

type Start = (variables: Record<string, string>) => Program | Promise<Program>;

/** Has everything done to a receiver that can happen to it, with a directory of its own. */
async function tryOut(start: Start): Promise<void> {
  const directory = await temporary();
  const serve = async () => {
    const port = await freePort();
    const program = await start({
      WEBHOOK_SECRET: `${FIRST} ${SECOND}`,
      DIRECTORY: join(directory, 'runs'),
      PORT: String(port),
    });
    await program.said(/ listens on http/);
    const url = `http://127.0.0.1:${port}/`;
    // The one in bash says so just before its socat does.
    await until(() =>
      fetch(url, { method: 'POST' }).then(
        () => true,
        () => null,
      ),
    );
    return { program, url };
  };
  const first = await serve();
  const done = async ({ program }: typeof first, runId: string) => {
    await program.said(new RegExp(`^${runId}: done`));
    return program.lines.filter((line) => line.startsWith(runId)).length;
  };

  const { body } = await daemon.call('POST', '/api/v1/runs', {
    target: { type: 'http', url: first.url, secret: FIRST },
    payload: { text: 'żółć', like: '"attempt":99,' },
  });
  const { id } = body as AnsweredRun;
  const run = await runOnce(daemon, id, ({ status }) => status !== 'pending');
  expect(run).toMatchObject({ status: 'succeeded', attempts: 1, executionId: `job-${id}` });
  expect(await done(first, id)).toBe(1);

  const send = async (url: string, attempt: number, secret: string, more: object = {}) =>
    fetch(url, { ...signedHandoff({ runId: id, attempt, secret }), ...more });
  const again = await send(first.url, 3, SECOND);
  expect([again.status, await again.json()]).toEqual([expect.toBeOneOf([200, 202]), { executionId: `job-${id}` }]);
  expect((await send(first.url, 2, FIRST)).status).toBe(409);
  expect((await send(first.url, 4, OTHER)).status).toBe(401);
  const old = signedHandoff({ runId: id, attempt: 4, secret: FIRST, at: new Date(Date.now() - 400_000) });
  expect((await fetch(first.url, old)).status).toBe(401);
  const changed = signedHandoff({ runId: id, attempt: 4, secret: FIRST });
  expect((await fetch(first.url, { ...changed, body: `${changed.body} ` })).status).toBe(401);
  expect((await fetch(first.url, { method: 'POST', body: changed.body })).status).toBe(401);

  first.program.signal('SIGKILL');
  await first.program.exited;
  const second = await serve();
  expect((await send(second.url, 5, FIRST)).status).toBeOneOf([200, 202]);
  // Work is done in the order of the runs: had the first been taken again, it would be done before.
  const later = runIdOf();
  expect((await fetch(second.url, signedHandoff({ runId: later, attempt: 1, secret: FIRST }))).ok).toBe(true);
  expect(await done(second, later)).toBe(1);
  const said = [...first.program.lines, ...second.program.lines];
  expect(said.filter((line) => line.startsWith(id))).toEqual([`${id}: done`]);
}

async function temporary(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'firelock-receivers-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

function needs(context: TestContext, ...programs: string[]): void {
  const missing = programs.filter((program) => spawnSync('which', [program]).status !== 0);
  if (missing.length > 0) context.skip(`needs ${missing.join(' and ')}`);
}

const TITLE = 'verifies, does each run once also when it is killed, and refuses lower attempts';

test(`the receiver in Node ${TITLE}`, async () => {
  // As it is installed, but from its sources: test/client/package.test.ts installs the package itself.
  const home = await temporary();
  const installed = join(home, 'node_modules', 'firelock-client');
  await mkdir(installed, { recursive: true });
  await symlink(join(root, 'clients', 'typescript', 'src'), join(installed, 'src'));
  const description = await readFile(join(root, 'clients', 'typescript', 'package.json'), 'utf8');
  const fromSources = description.replaceAll(/\.\/dist\/(\S+)\.js/g, './src/$1.ts');
  await writeFile(join(installed, 'package.json'), fromSources);
  await cp(join(root, 'examples', 'receivers', 'receiver.mjs'), join(home, 'receiver.mjs'));
  await tryOut((variables) => runExample(join(home, 'receiver.mjs'), [], variables));
});

test(`the receiver in Python ${TITLE}`, async (context) => {
  needs(context, 'python3');
  const PYTHONPATH = join(root, 'clients', 'python', 'src');
  await tryOut((variables) => runExample('receivers/receiver.py', [], { PYTHONPATH, ...variables }));
});

test(`the receiver in bash ${TITLE}`, async (context) => {
  needs(context, 'bash', 'socat', 'flock');
  // It is done only if the command does not know the secret.
  const command = ['sh', '-c', 'test -z "${WEBHOOK_SECRET+there}" && echo "$RUN_ID: done"'];
  await tryOut((variables) => runExample('receivers/receiver.sh', command, variables));
});

// The compiler has to make Go's library first.
test(`the receiver in Go ${TITLE}`, { tags: [LONG] }, async (context) => {
  const PATH = `${process.env['PATH'] ?? ''}:/usr/local/go/bin`;
  const go = spawnSync('go', ['version'], { env: { ...process.env, PATH } });
  if (go.status !== 0) context.skip('needs go');
  const binary = join(await temporary(), 'receiver');
  await promisify(execFile)('go', ['build', '-o', binary, 'receiver.go'], {
    env: { ...process.env, PATH, GOPROXY: 'off' },
    cwd: join(root, 'examples', 'receivers'),
  });
  await tryOut((variables) => runExample(binary, [], variables));
});
