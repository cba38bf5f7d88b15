// @module-tag long
import { spawnSync } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, expect, onTestFinished, test } from 'vitest';
import { freePort } from '../support/loopback.ts';
import { type Program, startCommand } from '../support/programs.ts';
import { runIdOf, secretOf, signedHandoff } from '../support/signed.ts';
import { until } from '../support/until.ts';
import { enqueue, runOnce, sharedDaemon, tokenOf } from '../examples/program.ts';

const clients = join(import.meta.dirname, '..', '..', 'clients');
const daemon = sharedDaemon();
const PATH = `${process.env['PATH'] ?? ''}:/usr/local/go/bin`;

type Words = readonly [command: string, ...args: string[]];

interface Language {
  name: string;
  /** Runs the vectors. */
  tests: Words;
  /** Makes of a program in a folder what runs it. */
  build: (folder: string, program: string) => Promise<Words>;
}

const LANGUAGES: Language[] = [
  {
    name: 'python',
    tests: ['python3', '-m', 'unittest', 'discover', '-s', 'tests'],
    build: async (folder, program) => {
      const file = join(folder, 'program.py');
      await writeFile(file, program);
      return ['python3', file];
    },
  },
  {
    name: 'go',
    tests: ['go', 'test', '-count=1', './...'],
    build: async (folder, program) => {
      await cp(join(clients, 'go'), join(folder, 'firelock'), { recursive: true });
      await writeFile(join(folder, 'main.go'), program);
      await writeFile(join(folder, 'go.mod'), 'module example\n\ngo 1.19\n');
      const module = 'firelock.example/clients/go';
      await run(folder, ['go', 'mod', 'edit', '-require', `${module}@v0.1.0`, '-replace', `${module}=./firelock`]);
      await run(folder, ['go', 'build', '-o', 'program', '.']);
      return [join(folder, 'program')];
    },
  },
];

function start(cwd: string, [command, ...args]: Words, variables: NodeJS.ProcessEnv = {}): Program {
  const PYTHONPATH = join(clients, 'python', 'src');
  const env = {
    PATH,
    PYTHONPATH,
    HOME: process.env['HOME'],
    GOFLAGS: '-mod=mod',
    GOPROXY: 'off',
    ...variables,
  };
  const program = startCommand(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  onTestFinished(() => program.kill());
  return program;
}

async function run(cwd: string, words: Words): Promise<void> {
  const program = start(cwd, words);
  expect([await program.exited, ...program.lines]).toEqual([0, ...program.lines]);
}

function needs(context: TestContext, [command]: Words): void {
  const found = spawnSync('which', [command], { env: { ...process.env, PATH } });
  if (found.status !== 0) context.skip(`needs ${command}`);
}

/** A program of the README, as it stands there, in a folder of its own. */
async function programOf({ name, build }: Language, heading: string): Promise<{ folder: string; words: Words }> {
  const readme = await readFile(join(clients, name, 'README.md'), 'utf8');
  const section = readme.split(/^## /m).find((text) => text.startsWith(heading)) ?? '';
  const [, program = ''] = new RegExp(`^\`\`\`${name}\n([^]*?)^\`\`\`$`, 'm').exec(section) ?? [];
  expect(program).not.toBe('');
  const folder = await mkdtemp(join(tmpdir(), `firelock-${name}-`));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return { folder, words: await build(folder, program) };
}

test.for(LANGUAGES)('the client in $name does what all vectors say', async ({ name, tests }, context) => {
  needs(context, tests);
  await run(join(clients, name), tests);
});

test.for(LANGUAGES)(
  'the worker in the README of $name works for a daemon until it stops',
  async (language, context) => {
    needs(context, language.tests);
    const { folder, words } = await programOf(language, 'A worker');
    const variables = { FIRELOCK_URL: daemon.url, FIRELOCK_TOKEN: tokenOf('worker') };
    const program = start(folder, words, variables);
    const good = await enqueue(daemon, 'reports', { month: '2030-01' });
    const done = await runOnce(daemon, good, ({ status }) => status === 'succeeded');
    expect([done.attempts, JSON.parse(done.result?.body ?? '')]).toEqual([1, { pages: 10 }]);
    const log = await fetch(`${daemon.url}/api/v1/runs/${good}/log`, {
      headers: { authorization: `Bearer ${tokenOf('worker')}` },
    });
    expect([log.status, await log.text()]).toEqual([200, 'the report of 2030-01\n']);
    const bad = await enqueue(daemon, 'reports', {});
    const failed = await runOnce(daemon, bad, ({ status }) => status === 'failed');
    expect(failed).toMatchObject({ attempts: 1, error: { message: 'the payload has no month' } });
    program.signal('SIGTERM');
    expect(await program.exited).toBe(0);
  },
);

test.for(LANGUAGES)(
  'the receiver in the README of $name does a run once, also when it is killed',
  async (language, context) => {
    needs(context, language.tests);
    const { folder, words } = await programOf(language, 'A receiver');
    const [secret, runId, port] = [secretOf(1), runIdOf(), await freePort()];
    const serve = () => start(folder, words, { WEBHOOK_SECRET: `${secretOf(2)} ${secret}`, PORT: String(port) });
    const send = (attempt: number) =>
      until(() =>
        fetch(`http://127.0.0.1:${port}/`, signedHandoff({ runId, attempt, secret, payload: 'hello' })).then(
          async (answer) => [answer.status, await answer.json()] as [number, unknown],
          () => null,
        ),
      );
    const first = serve();
    const taken = [200, { executionId: `job-${runId}` }];
    expect(await send(1)).toEqual(taken);
    first.signal('SIGKILL');
    await first.exited;
    const second = serve();
    expect(await send(3)).toEqual(taken);
    expect((await send(2))[0]).toBe(409);
    expect([...first.lines, ...second.lines].filter((line) => line.startsWith(`${runId}: `))).toHaveLength(1);
  },
);
