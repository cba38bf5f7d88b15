import type { Command } from 'commander';
import type { Cli } from '../cli.ts';
import { CliError, EXIT, failure, usageError } from '../exit-codes.ts';
import type { BulkAnswer } from '../server/answers.ts';
import { type Answer, type Server, pathOf } from '../server/server-calls.ts';
import type { Surroundings } from '../surroundings.ts';
import { printable } from '../terminal/shown-text.ts';
import type { View } from '../terminal/output.ts';

/** The command `delete` of a group: asks on a terminal, and takes --yes elsewhere. `warning` names what else is lost. */
export function addDelete(parent: Command, cli: Cli, noun: string, warning?: string): Command {
  return parent
    .command('delete <id>')
    .description(`delete a ${noun}${warning === undefined ? '' : `; ${warning}`}`)
    .option('--yes', 'without asking')
    .action(async (id: string, options: { yes?: true }) => {
      const server = cli.server();
      await confirm(cli.surroundings, `Delete ${noun} ${id} of ${server.url}?`, options);
      await server.call('DELETE', pathOf(`${noun}s`, id));
      cli.output().show({ deleted: id }, () => [`${noun} ${id} is deleted`]);
    });
}

export interface BulkOptions {
  dryRun?: true;
  all?: true;
  yes?: true;
}

interface BulkAction {
  path: string;
  verb: string;
  /** In the plural. */
  noun: string;
  body: object;
}

export function bulkOptions(command: Command): Command {
  return command
    .option('--dry-run', 'change nothing: say how many match, and name some of them')
    .option('--all', 'go on, call after call, until none is left')
    .option('--yes', 'without asking');
}

/** Says what matches, asks, and then acts; with --all it repeats the call as long as it changes something. */
export async function actOnMatching(
  cli: Cli,
  { path, verb, noun, body }: BulkAction,
  options: BulkOptions,
): Promise<void> {
  const server = cli.server();
  if (!options.dryRun) requireAnswer(cli.surroundings, options);
  const output = cli.output();
  const act = async (dryRun: boolean) =>
    (await server.call('POST', path, { body: { ...body, dryRun } })).body() as BulkAnswer;
  if (options.dryRun || !options.yes) {
    const found = await act(true);
    const lines = [`${noun} that match: ${found.matched}`, ...found.sample.map((id) => `  ${id}`)];
    const others = found.matched - found.sample.length;
    if (others > 0) lines.push(`  and ${others} others`);
    if (options.dryRun || found.matched === 0) {
      output.show(found, () => lines);
      return;
    }
    for (const line of lines) output.note(line);
    await confirm(cli.surroundings, `${verb} them at ${server.url}?`, options);
  }
  const done = await act(false);
  while (options.all && done.remaining > 0) {
    output.note(`${done.changed} done, ${done.remaining} to go`);
    const { changed, remaining } = await act(false);
    done.changed += changed;
    done.remaining = remaining;
    if (changed === 0) break;
  }
  output.show(done, () => [
    `${noun} changed: ${done.changed} of ${done.matched}`,
    ...(done.remaining > 0 ? [`${done.remaining} are left: run the same command again to continue`] : []),
  ]);
}

interface Answered {
  yes?: true | undefined;
}

/** @throws CliError if there is no terminal to ask on, and no --yes */
function requireAnswer({ input, err }: Surroundings, { yes }: Answered): void {
  if (!yes && !(input.isTerminal && err.isTerminal))
    throw usageError('this command asks for confirmation, and there is no terminal to ask on: add --yes');
}

/**
 * Asks before an action that cannot be undone. Without a terminal it needs --yes.
 * @throws CliError if the answer is not yes, or the question cannot be asked
 */
async function confirm(surroundings: Surroundings, question: string, answered: Answered): Promise<void> {
  requireAnswer(surroundings, answered);
  if (answered.yes) return;
  const { input, err, signal } = surroundings;
  err.write(`${printable(question)} [y/N] `);
  const answer = await input.readLine();
  if (signal.aborted) throw new CliError(EXIT.interrupted, 'interrupted; nothing was changed');
  if (!/^\s*y(es)?\s*$/i.test(answer ?? '')) throw failure('nothing was changed');
}

/** A thing as it was read, to be written over. */
export interface Found<Body> {
  server: Server;
  path: string;
  /** Null: there is none. */
  before: Body | null;
  /** With them, a write fails (412) if it has changed meanwhile. */
  headers: Readonly<Record<string, string>>;
}

/** Writes a thing over what was read, and says what became of it. */
export async function writeOver<Body extends { version: number }>(
  cli: Cli,
  { noun, id }: { noun: string; id: string },
  write: (found: Found<Body>) => Promise<Answer>,
  besides: (after: Body, view: View) => string = () => '',
): Promise<void> {
  const server = cli.server();
  const path = pathOf(`${noun}s`, id);
  const found = await server.find(path);
  const before = found === null ? null : (found.body() as Body);
  const headers: Record<string, string> =
    found === null ? { 'if-none-match': '*' } : found.etag === null ? {} : { 'if-match': found.etag };
  const answer = await write({ server, path, before, headers });
  const after = answer.body() as Body;
  const done = before === null ? 'created' : before.version === after.version ? 'unchanged:' : 'changed';
  const said = `${done} ${noun} ${id}, version ${after.version}`;
  const output = cli.output();
  if (output.isJson) output.note(said);
  output.show(answer.text, (view) => [said + besides(after, view)]);
}
