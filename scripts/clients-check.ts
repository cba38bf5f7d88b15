/**
 * Generates a Go client and a Python client from the OpenAPI document of a daemon, as people who have only that do, and runs
 * a program with each against the daemon. test/generated-clients/README.md says more.
 *
 *     npm run clients:check [-- --report=FILE]     FILE gets {"passed": N, "failed": M}
 */
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { parseArgs } from 'node:util';
import { createToken, tokenHash } from '../src/core/access/token.ts';
import { startCluster } from '../test/support/postgres/server.ts';
import { type Daemon, listening, startCommand, startProgram } from '../test/support/programs.ts';
import { type Receiver, startReceiver } from '../test/support/receiver.ts';
import { QUICK_START } from '../test/support/runner/quick-start.ts';
import { within } from '../test/support/within.ts';
import { type Check, runChecks } from './support/checks.ts';

interface Stage {
  /** Where the clients are made: nothing of them stays. */
  readonly go: string;
  readonly python: string;
  readonly receiver: Receiver;
  readonly daemon: Daemon;
  readonly token: string;
  readonly operationIds: string[];
  readonly written: string[];
}

const LIMIT_MS = 600_000;
/** Whose body is a text, in the order of the document: openapi-python-client makes nothing of them. */
const OF_TEXT = [
  ['/ping/{key}', 'reports', 'pingWithText'],
  ['/ping/{key}/{word}', 'reports', 'pingWordWithText'],
  ['/api/{project}/cron/{id}/{key}/', 'reports', 'checkInWithText'],
  ['/api/v1/runs/{id}/log', 'runs', 'appendRunLog'],
] as const;
const PYTHON_API = 'src/firelock_client/api';

const checks: Check<Stage>[] = [
  ['oapi-codegen makes a method of each operation', generatesGo],
  ['its Go client compiles, and so does a program that uses it', compilesGo],
  ['that program previews, makes, fires, lists and deletes', (stage) => uses(stage, stage.go, ['./main'])],
  ['openapi-python-client is installed', installsPython],
  ['it makes a module of each operation but those that take a text, and warns of nothing else', generatesPython],
  [
    'a program imports all of its Python client, and previews, makes, fires, lists and deletes',
    (stage) => uses(stage, stage.python, ['python', 'program.py']),
  ],
  ['the daemon has logged no error', loggedNoError],
];

await runChecks({
  ...{ name: 'generated clients', checks, setStage },
  wrote: ({ written, daemon }) => [...written.slice(-200), ...daemon.lines.slice(-20)].join('\n'),
  report: parseArgs({ options: { report: { type: 'string' } } }).values.report,
});

async function setStage(cleanup: (() => Promise<void> | void)[]): Promise<Stage> {
  const folder = mkdtempSync(join(tmpdir(), 'firelock-clients-'));
  cleanup.push(() => rmSync(folder, { recursive: true, force: true }));
  const root = join(import.meta.dirname, '..');
  // As in a checkout, but with the daemon's own document.
  const [go, python] = [join(folder, 'clients', 'go', 'api'), join(folder, 'clients', 'python')];
  cpSync(join(root, 'clients', 'go', 'api'), go, { recursive: true });
  cpSync(join(root, 'clients', 'python'), python, { recursive: true });
  const programs = join(root, 'test', 'generated-clients');
  cpSync(join(programs, 'main.go'), join(go, 'program', 'main.go'));
  cpSync(join(programs, 'program.py'), join(python, 'program.py'));
  const cluster = await startCluster();
  cleanup.push(() => cluster.stop());
  const receiver = await startReceiver();
  cleanup.push(() => receiver.close());
  const token = createToken((end) => randomInt(end));
  const program = startProgram({
    variables: {
      ...QUICK_START,
      DATABASE_URL: await cluster.createDatabase(),
      PORT: '0',
      FIRELOCK_API_TOKENS: `clients:admin:${tokenHash(token).toString('hex')}`,
    },
  });
  cleanup.push(() => program.kill());
  const daemon = await listening(program);
  await daemon.ready();
  const { text } = await daemon.call('GET', '/openapi.json');
  mkdirSync(join(folder, 'openapi'));
  writeFileSync(join(folder, 'openapi', 'openapi.json'), text);
  return { go, python, receiver, daemon, token, operationIds: operationIdsIn(text), written: [] };
}

function operationIdsIn(text: string): string[] {
  const { paths } = JSON.parse(text) as { paths: Record<string, Record<string, { operationId: string }>> };
  return Object.values(paths).flatMap((methods) => Object.values(methods).map(({ operationId }) => operationId));
}

async function generatesGo(stage: Stage) {
  await run(stage, stage.go, ['go', 'generate', './...']);
  const text = readFileSync(join(stage.go, 'client.gen.go'), 'utf8');
  // One that takes no JSON has its body as a reader only.
  const methods = [...text.matchAll(/^func \(c \*ClientWithResponses\) (\w+?)(?:WithBody)?WithResponse\(/gm)].map(
    ([, name = '']) => name.slice(0, 1).toLowerCase() + name.slice(1),
  );
  hasEach(stage, methods);
}

async function compilesGo(stage: Stage) {
  await run(stage, stage.go, ['go', 'vet', './...']);
  await run(stage, stage.go, ['go', 'build', '-o', 'main', './program']);
}

async function installsPython(stage: Stage) {
  await run(stage, stage.python, ['python3', '-m', 'venv', 'venv']);
  await run(stage, stage.python, ['pip', 'install', '--quiet', '--disable-pip-version-check', '-r', 'generator.txt']);
}

async function generatesPython(stage: Stage) {
  const options = ['--path=../../openapi/openapi.json', `--output-path=${PYTHON_API}`, '--meta=none'];
  await run(stage, stage.python, ['openapi-python-client', 'generate', ...options]);
  assert.deepEqual(
    stage.written.filter((line) => /^(WARNING|ERROR)/.test(line)),
    OF_TEXT.map(([path, tag]) => `WARNING parsing POST ${path} within ${tag}. Endpoint will not be generated.`),
  );
  const folder = join(stage.python, PYTHON_API, 'api');
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((path) => basename(path, '.py'));
  const made = files.map((name) => name.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase()));
  hasEach(stage, [...made, ...OF_TEXT.map(([, , operationId]) => operationId)]);
}

function hasEach({ operationIds }: Stage, made: readonly string[]) {
  assert.ok(operationIds.length > 50);
  assert.deepEqual(
    operationIds.filter((id) => !made.includes(id)),
    [],
  );
}

/** The program writes the id of its run, which has to be the one that arrived. */
async function uses(stage: Stage, folder: string, words: Words) {
  const { daemon, token, receiver } = stage;
  const before = receiver.arrivals.length;
  const said = await run(stage, folder, words, {
    ...{ FIRELOCK_URL: daemon.url, FIRELOCK_TOKEN: token, TARGET_URL: `${receiver.url}/job` },
  });
  const arrived = receiver.arrivals.slice(before).map(({ body }) => [body.runId, body.payload]);
  assert.deepEqual(arrived, [[said.trim(), { report: 'daily' }]]);
}

function loggedNoError({ daemon }: Stage) {
  assert.deepEqual(
    daemon.log().filter(({ level }) => level >= 50),
    [],
  );
}

type Words = readonly [command: string, ...args: string[]];

/** Answers what it wrote; throws unless it succeeds. */
async function run(stage: Stage, cwd: string, [command, ...args]: Words, variables: NodeJS.ProcessEnv = {}) {
  const PATH = `${join(cwd, 'venv', 'bin')}:${process.env['PATH'] ?? ''}`;
  const env = { ...process.env, PATH, PYTHONPATH: 'src', ...variables };
  const program = startCommand(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const code = await within(LIMIT_MS, program.exited, `${command} did not end`);
  stage.written.push(...program.lines);
  assert.equal(code, 0, [command, ...args].join(' '));
  return program.text.out;
}
