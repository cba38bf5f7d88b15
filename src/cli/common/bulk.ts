import type { Command } from 'commander';
import type { Cli } from '../cli.ts';
import type { BulkAnswer } from '../server/answers.ts';
import { confirm, requireAnswer } from '../terminal/confirm.ts';

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
    ...(done.remaining > 0 ? [`${done.remaining} are left: the same command again goes on with these`] : []),
  ]);
}
