import type { Command } from 'commander';
import { createProgram } from '../../src/cli/program.ts';
import { surroundings } from './cli.ts';

/** Parses a command as it is typed, without doing it. @throws an error with the reason where there is no such command or option */
export function acceptsCommand(line: string): void {
  const said = { out: '', err: '' };
  const { program } = createProgram(surroundings({}, said));
  disarm(program);
  try {
    program.parse(wordsOf(line), { from: 'user' });
  } catch {
    throw new Error(`firelock ${line}: ${said.err}`);
  }
}

function disarm(command: Command): void {
  if (command.commands.length === 0) command.action(() => undefined);
  for (const below of command.commands) disarm(below);
}

/** The words of a line, as a shell takes them apart where nothing is to be expanded. */
function wordsOf(line: string): string[] {
  return [...line.matchAll(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g)].map(([word]) => word.replaceAll(/['"]/g, ''));
}
