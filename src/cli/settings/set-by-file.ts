import type { Command } from 'commander';
import { parseDocument } from 'yaml';
import { type Cli, withExamples } from '../cli.ts';
import { fileText } from '../common/arguments.ts';
import { failure } from '../exit-codes.ts';
import { writeNamed } from './named-commands.ts';

/** The command `set` of a group whose things have secret values. */
export function addSetByFile(
  parent: Command,
  cli: Cli,
  { noun, example }: { noun: 'connection' | 'notifier'; example: string },
): void {
  const command = parent
    .command('set')
    .description(`create a ${noun}, or replace it whole; *** keeps a secret value that is stored`)
    .argument('<id>')
    .requiredOption('--file <file>', 'its whole definition, as JSON or YAML (-: standard input)')
    .action(async (id: string, { file }: { file: string }) => {
      const body = definitionIn(await fileText(file, cli.surroundings), file);
      await writeNamed(cli, noun, id, () => body);
    });
  const set = `firelock ${noun} set ${example} --file ${example}`;
  withExamples(
    command,
    `${set}.yaml`,
    `firelock ${noun} get ${example} --json > ${example}.json; ${set}.json`,
  );
}

/** What is wrong with the text is said without the text itself: there are secrets in it. */
function definitionIn(text: string, file: string): unknown {
  const document = parseDocument(text.replace(/^\ufeff/, ''), { prettyErrors: false, stringKeys: true });
  const [error] = document.errors;
  if (error !== undefined) {
    const line = text.slice(0, error.pos[0]).split('\n').length;
    throw failure(`${file}:${line}: neither JSON nor YAML: ${error.code}`);
  }
  try {
    return document.toJS() as unknown;
  } catch {
    throw failure(`${file}: an alias in it cannot be resolved; put quotes around a text that begins with *`);
  }
}
