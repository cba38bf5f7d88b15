import type { Command } from 'commander';

/** The examples at the end of a command's help. Each line works as it stands, except for the names in it. */
export function withExamples(command: Command, ...lines: readonly string[]): Command {
  return command.addHelpText('after', `\nExamples:\n${lines.map((line) => `  ${line}`).join('\n')}`);
}

/** A command that does nothing by itself: `firelock schedule`. */
export function group(parent: Command, name: string, description: string): Command {
  return parent.command(name).description(description).helpCommand(false);
}
