import type { Command } from 'commander';
import { type Answer, type Server, connectTo } from './server/server-calls.ts';
import type { Surroundings } from './surroundings.ts';
import { type Output, type OutputOptions, type View, createOutput } from './terminal/output.ts';

/** What each command gets: the process around it, and the server and the output that the options before it choose. */
export interface Cli {
  readonly surroundings: Surroundings;
  /** @throws CliError where FIRELOCK_URL or FIRELOCK_TOKEN cannot be right */
  server(): Server;
  output(): Output;
  /** Shows what the server answers, as JSON or as these lines. `lines` says what type the answer has. */
  show(asked: Promise<Answer>, lines: (body: never, view: View) => readonly string[]): Promise<void>;
  /** The exit code, if a command has one other than 0 without having failed. */
  exitCode: number;
}

export function createCli(surroundings: Surroundings, program: Command): Cli {
  let opened: Output | undefined;
  const output = () => (opened ??= createOutput(surroundings, program.opts<OutputOptions>()));
  return {
    surroundings,
    server: () => connectTo(surroundings),
    output,
    show: async (asked, lines) => {
      const answer = await asked;
      const body = answer.body() as never;
      output().show(answer.text, (view) => lines(body, view));
    },
    exitCode: 0,
  };
}

/** The examples at the end of a command's help. Each line works as it stands, except for the names in it. */
export function withExamples(command: Command, ...lines: readonly string[]): Command {
  return command.addHelpText('after', `\nExamples:\n${lines.map((line) => `  ${line}`).join('\n')}`);
}

/** A command that does nothing by itself: `firelock schedule`. */
export function group(parent: Command, name: string, description: string): Command {
  return parent.command(name).description(description).helpCommand(false);
}
