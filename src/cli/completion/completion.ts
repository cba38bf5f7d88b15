import type { Command } from 'commander';
import type { Cli } from '../cli.ts';
import { CliError, EXIT } from '../exit-codes.ts';
import { type Completions, bashScript, fishScript, zshScript } from './completion-scripts.ts';
import { group, withExamples } from '../tree.ts';

const SCRIPTS = { bash: bashScript, zsh: zshScript, fish: fishScript };

/** Each shell's own command, so that it has a help of its own. */
export function addCompletion(program: Command, cli: Cli): void {
  const completion = group(program, 'completion', 'a script with which a shell completes its commands');
  const examples = {
    bash: 'source <(firelock completion bash)',
    zsh: 'source <(firelock completion zsh)',
    fish: 'firelock completion fish > ~/.config/fish/completions/firelock.fish',
  };
  for (const shell of ['bash', 'zsh', 'fish'] as const) {
    const command = completion
      .command(shell)
      .description(`the script for ${shell}`)
      .action(() => cli.surroundings.out.write(SCRIPTS[shell](completionsOf(program))));
    withExamples(command, examples[shell]);
  }
}

/** Made from the program's own tree, so that nothing is missing; it asks no server. */
export function completionsOf(program: Command): Completions[] {
  const visit = (command: Command, path: readonly string[]): Completions[] => {
    const help = command.createHelp();
    const words = [
      ...command.commands.map((one) => ({ word: one.name(), description: one.description() })),
      ...[...help.visibleOptions(command), ...(path.length === 0 ? [] : help.visibleGlobalOptions(command))]
        .filter(({ long }) => long)
        .map(({ long, description }) => ({ word: long ?? '', description })),
    ];
    for (const { word } of words)
      if (!/^[\w-]+$/.test(word)) throw new CliError(EXIT.failed, `${word} cannot be completed`);
    return [
      { path: path.join(' '), words },
      ...command.commands.flatMap((one) => visit(one, [...path, one.name()])),
    ];
  };
  return visit(program, []);
}
