import type { Command } from 'commander';
import { type Cli, group, withExamples } from './cli.ts';
import { failure } from './exit-codes.ts';

/** The words that can follow the commands of a path. */
interface Completions {
  /** A path such as `schedule list`; empty: the program itself. */
  path: string;
  words: { word: string; description: string }[];
}

/** Each shell's own command, so that it has a help of its own. */
export function addCompletion(program: Command, cli: Cli): void {
  const completion = group(program, 'completion', 'a script with which a shell completes its commands');
  const scripts = { bash: bashScript, zsh: zshScript, fish: fishScript };
  const examples = {
    bash: 'source <(firelock completion bash)',
    zsh: 'source <(firelock completion zsh)',
    fish: 'firelock completion fish > ~/.config/fish/completions/firelock.fish',
  };
  for (const shell of ['bash', 'zsh', 'fish'] as const) {
    const command = completion
      .command(shell)
      .description(`the script for ${shell}`)
      .action(() => cli.surroundings.out.write(scripts[shell](completionsOf(program))));
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
    for (const { word } of words) if (!/^[\w-]+$/.test(word)) throw failure(`${word} cannot be completed`);
    return [{ path: path.join(' '), words }, ...command.commands.flatMap((one) => visit(one, [...path, one.name()]))];
  };
  return visit(program, []);
}

/**
 * Each script walks over the words before the cursor to find the command: the longest path of words that are commands,
 * without options. Words contain only letters, digits and dashes.
 */
function bashScript(tree: readonly Completions[]): string {
  return `# firelock completion bash
_firelock() {
  local path="" word next
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    next="\${path:+$path }$word"
    case "$next" in
      ${pathsOf(tree)}) path="$next" ;;
    esac
  done
  local words=""
  case "$path" in
${tree.map(({ path, words }) => `    "${path}") words="${words.map(({ word }) => word).join(' ')}" ;;`).join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _firelock firelock
`;
}

function zshScript(tree: readonly Completions[]): string {
  const described = (words: Completions['words']) =>
    words.map(({ word, description }) => quoted(`${word}:${description}`)).join(' ');
  return `#compdef firelock
# firelock completion zsh
_firelock() {
  local path_="" word next
  for word in "\${(@)words[2,CURRENT-1]}"; do
    next="\${path_:+$path_ }$word"
    case "$next" in
      ${pathsOf(tree)}) path_="$next" ;;
    esac
  done
  local -a found
  case "$path_" in
${tree.map(({ path, words }) => `    "${path}") found=(${described(words)}) ;;`).join('\n')}
  esac
  _describe 'firelock' found || _files
}
compdef _firelock firelock
`;
}

function fishScript(tree: readonly Completions[]): string {
  const lines = tree.flatMap(({ path, words }) =>
    words.map(({ word, description }) => {
      const what = word.startsWith('--') ? `-l ${word.slice(2)}` : `-f -a ${word}`;
      return `complete -c firelock -n '__firelock_at "${path}"' ${what} -d ${quoted(description, '\\\\')}`;
    }),
  );
  return `# firelock completion fish
function __firelock_at
  set -l path
  for word in (commandline -opc)[2..-1]
    set -l next (string join -- " " $path $word)
    contains -- "$next" ${tree.map(({ path }) => `"${path}"`).join(' ')}; and set path $next
  end
  test "$path" = "$argv[1]"
end
${lines.join('\n')}
`;
}

function pathsOf(tree: readonly Completions[]): string {
  return tree
    .filter(({ path }) => path !== '')
    .map(({ path }) => `"${path}"`)
    .join('|');
}

/** A single-quoted word of a shell, on one line. zsh ends and begins the quotes again; fish has an escape inside them. */
function quoted(text: string, escape?: string): string {
  const line = text.replace(/\s+/g, ' ');
  return escape === undefined
    ? `'${line.replaceAll("'", "'\\''")}'`
    : `'${line.replaceAll('\\', escape).replaceAll("'", "\\'")}'`;
}
