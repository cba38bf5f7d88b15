import type { Command } from 'commander';
import { createProgram } from '../../src/cli/program.ts';
import { surroundings } from '../../test/cli/cli.ts';

const HEAD = `# Commands

For people and scripts that use \`firelock\` from a shell: what \`--help\` says of every command. [cli.md](cli.md) says how to
call them, what they print, and what their exit codes mean.`;

/** The help of each command that does something, without the options that all have. */
export function commandsReference(): string {
  const said = { out: '', err: '' };
  const { program } = createProgram(surroundings({}, said));
  const sections = doersOf(program, 'firelock').map(([name, command]) => {
    said.out = '';
    command.outputHelp();
    const help = said.out.replace(/\nGlobal Options:\n(?: .*\n)+/, '').trim();
    return `## ${name}\n\n\`\`\`text\n${help}\n\`\`\``;
  });
  return `${[HEAD, ...sections].join('\n\n')}\n`;
}

function doersOf(command: Command, name: string): [string, Command][] {
  if (command.commands.length === 0) return [[name, command]];
  return command.commands.flatMap((below) => doersOf(below, `${name} ${below.name()}`));
}
