import type { Command } from 'commander';
import { parseDocument } from 'yaml';
import type { Cli } from '../cli.ts';
import { fileText } from '../common/arguments.ts';
import { usageError } from '../exit-codes.ts';
import { pathOf } from '../server/server-calls.ts';

/** The command `put` of a group whose things have secret values: it writes only over the version that it has seen. */
export function addPut(
  parent: Command,
  cli: Cli,
  { noun, collection }: { noun: string; collection: string },
): Command {
  return parent
    .command('put')
    .description(`create a ${noun}, or replace it whole; *** keeps a secret value that is stored`)
    .argument('<id>')
    .requiredOption('--file <file>', 'its whole definition, as JSON or YAML (-: standard input)')
    .action(async (id: string, { file }: { file: string }) => {
      const body = definitionIn(await fileText(file, cli.surroundings), file);
      const server = cli.server();
      const path = pathOf(collection, id);
      const before = await server.find(path);
      const headers: Record<string, string> =
        before === null ? { 'if-none-match': '*' } : before.etag === null ? {} : { 'if-match': before.etag };
      const answer = await server.call('PUT', path, { body, headers });
      const was = before === null ? null : (before.body() as Versioned).version;
      const { version } = answer.body() as Versioned;
      const done = was === null ? 'created' : was === version ? 'unchanged:' : 'changed';
      const said = `${done} ${noun} ${id}, version ${version}`;
      const output = cli.output();
      if (output.isJson) output.note(said);
      output.show(answer.text, () => [said]);
    });
}

interface Versioned {
  version: number;
}

/** What is wrong with the text is said without the text itself: there are secrets in it. */
function definitionIn(text: string, file: string): unknown {
  const document = parseDocument(text.replace(/^\ufeff/, ''), { prettyErrors: false, stringKeys: true });
  const [error] = document.errors;
  if (error !== undefined) {
    const line = text.slice(0, error.pos[0]).split('\n').length;
    throw usageError(`${file}:${line}: neither JSON nor YAML: ${error.code}`);
  }
  try {
    return document.toJS() as unknown;
  } catch {
    throw usageError(
      `${file}: an alias in it cannot be resolved; put quotes around a text that begins with *`,
    );
  }
}
