import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import { expect, test } from 'vitest';
import { commandsReference } from '../../scripts/support/commands-reference.ts';
import { completionsOf } from '../../src/cli/completion.ts';
import { createProgram } from '../../src/cli/program.ts';
import { EXIT } from '../../src/cli/exit-codes.ts';
import { acceptsCommand } from './accepts-command.ts';
import { firelock, surroundings } from './cli.ts';
import { parseTokenLines, tokenForm, tokenHash } from '../../src/core/access/token.ts';

const page = readFileSync(new URL('../../docs/cli.md', import.meta.url), 'utf8');
const { program } = createProgram(surroundings());

/** Each command of the tree with its path; those that do something have no commands below. */
function walk(command: Command, path: readonly string[] = []): { path: string[]; command: Command }[] {
  const here = { path: [...path], command };
  return [here, ...command.commands.flatMap((one) => walk(one, [...path, one.name()]))];
}
const commands = walk(program);
const doers = commands.filter(({ command }) => command.commands.length === 0);

test('every command says what it does, with its options and examples that are commands', async () => {
  expect(doers.length).toBeGreaterThan(40);
  for (const { path, command } of commands) {
    const { code, out, err } = await firelock([...path, '--help']);
    expect([path, code, err]).toEqual([path, 0, '']);
    expect(out).toContain(`Usage: ${['firelock', ...path].join(' ')}`);
    for (const { long } of command.options) expect(out).toContain(long);
    if (command.commands.length > 0) continue;
    const examples = out.split('\nExamples:\n')[1]?.trim().split('\n') ?? [];
    expect(examples.join('\n'), path.join(' ')).toContain(`firelock ${path.join(' ')}`);
    for (const [, line = ''] of examples.join('\n').matchAll(/(?<![/\w])firelock ([^|<>()&;\n]+)/g))
      acceptsCommand(line);
  }
});

test('docs/cli.md has every exit code, and the reference of commands has every command with its options', () => {
  for (const code of [...Object.values(EXIT), 2]) expect(page).toMatch(new RegExp(`^\\| ${code} +\\|`, 'm'));
  const sections = commandsReference().split('\n## ').slice(1);
  expect(sections.map((one) => one.split('\n', 1)[0])).toEqual(doers.map(({ path }) => `firelock ${path.join(' ')}`));
  for (const [at, { command }] of doers.entries())
    for (const { long, hidden } of command.options) if (!hidden) expect(sections[at]).toContain(long);
});

test('a command line that is not understood is reported on standard error, with a suggestion', async () => {
  expect(await firelock('schedul list')).toMatchObject({
    code: 64,
    out: '',
    err: "firelock: unknown command 'schedul'\n(Did you mean schedule?)\n--help lists commands and options\n",
  });
  expect((await firelock('schedule list --limt 3')).err).toContain('(Did you mean --limit?)');
  expect(await firelock('--version')).toMatchObject({ code: 0, out: 'firelock 0.0.0-test\n' });
  // 2 would be what `apply` says of changes, and `apply --prun || test $? = 2` be well.
  for (const { path } of doers) expect([path, (await firelock([...path, '--prun'])).code]).toEqual([path, 64]);
});

test('the daemon, and commands that work on its database, start and end with the exit code', async () => {
  const code = (number: number) => () => Promise.resolve(number);
  expect((await firelock('serve', { daemon: { serve: code(7) } })).code).toBe(7);
  for (const args of [['resume', '--from-now'], ['migrate']])
    expect((await firelock(args, { daemon: { onDatabase: code(1) } })).code).toBe(1);
});

test('the scripts of shells complete commands and options', async (context) => {
  const script = async (shell: string) => (await firelock(['completion', shell])).out;
  const paths = completionsOf(program).map(({ path }) => path);
  expect(paths).toEqual(commands.map(({ path }) => path.join(' ')));
  for (const shell of ['zsh', 'fish']) {
    const text = await script(shell);
    for (const path of paths) expect(text).toContain(`"${path}"`);
  }
  if (spawnSync('bash', ['-c', 'true']).status !== 0) context.skip('there is no bash');
  const complete = `${await script('bash')}
    try() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _firelock; echo "\${COMPREPLY[@]}"; }
    try firelock sched
    try firelock schedule un
    try firelock --json schedule list --li
    try firelock run bulk retry --dr
    try firelock completion ''`;
  const { stdout } = spawnSync('bash', ['-c', complete], { encoding: 'utf8' });
  expect(stdout.split('\n')).toEqual([
    'schedule',
    'unskip',
    '--limit',
    '--dry-run',
    'bash zsh fish --help --version --json --no-json --wide',
    '',
  ]);
});

const now = Date.UTC(2030, 0, 1);

async function makeToken(...args: string[]) {
  const { code, out, err } = await firelock(['token create', ...args], { now });
  return { code, printed: out.split('\n').slice(0, -1), explained: err.split('\n').slice(0, -1) };
}

test('prints a new token, and the line that the daemon needs for it', async () => {
  for (const [args, expiresAt] of [
    [['ci', '--role', 'operator'], null],
    [['--role=operator', '--expires=2030-01-01T01:00:00+00:30', 'ci'], now + 1_800_000],
  ] as const) {
    const { code, printed } = await makeToken(...args);
    const [token = '', line = ''] = printed;
    expect([code, printed.length, tokenForm(token)]).toEqual([0, 2, 'token']);
    expect(parseTokenLines([{ text: line, place: '' }])).toEqual({
      tokens: [{ name: 'ci', role: 'operator', scope: null, hash: tokenHash(token), expiresAt }],
      faults: [],
    });
  }
  const again = () => makeToken('ci', '--role', 'viewer');
  expect((await again()).printed).not.toEqual((await again()).printed);
});

test('names every fault at once, and then makes no token', async () => {
  const { code, printed, explained } = await makeToken('-x'.slice(1), 'y', '--role', 'boss', '--expires', 'tomorrow');
  expect([code, printed]).toEqual([64, []]);
  expect(explained).toEqual([
    expect.stringMatching(/give only one NAME/),
    expect.stringMatching(/--role must be one of viewer, worker, operator, admin$/),
    expect.stringMatching(/--expires must be an instant/),
  ]);
  expect((await makeToken()).explained).toEqual([
    expect.stringMatching(/NAME must be/),
    expect.stringMatching(/--role must/),
  ]);
  expect((await makeToken('firelock', '--role', 'admin')).explained).toEqual([
    expect.stringMatching(/NAME must be .*"firelock"/),
  ]);
  expect((await makeToken('ci', '--role', 'admin', '--expires', '2030-01-01T00:00:00Z')).explained).toEqual([
    expect.stringMatching(/--expires must be in the future$/),
  ]);
  expect(await makeToken('ci', '--rôle', 'admin')).toMatchObject({ code: 64, printed: [] });
});
