import type { Command } from 'commander';
import type { Cli } from '../cli.ts';
import { pathOf } from '../server/server-calls.ts';
import { confirm } from '../terminal/confirm.ts';

interface Deletable {
  noun: string;
  /** Its path below /api/v1. */
  collection: string;
  /** Names what else is lost. */
  warning?: string;
}

/** The command `delete` of a group: asks on a terminal, and takes --yes elsewhere. */
export function addDelete(parent: Command, cli: Cli, { noun, collection, warning }: Deletable): Command {
  return parent
    .command('delete')
    .description(`delete a ${noun}${warning === undefined ? '' : `; ${warning}`}`)
    .argument('<id>')
    .option('--yes', 'without asking')
    .action(async (id: string, options: { yes?: true }) => {
      const server = cli.server();
      await confirm(cli.surroundings, `Delete ${noun} ${id} of ${server.url}?`, options);
      await server.call('DELETE', pathOf(collection, id));
      cli.output().show({ deleted: id }, () => [`${noun} ${id} is deleted`]);
    });
}
