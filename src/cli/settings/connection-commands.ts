import type { Command } from 'commander';
import { type Cli, group, withExamples } from '../cli.ts';
import { addDelete } from '../common/confirmed-actions.ts';
import type { ConnectionAnswer } from '../server/answers.ts';
import { type ListOptions, listOptions, showList } from '../server/list-pages.ts';
import { pathOf } from '../server/server-calls.ts';
import { addPut } from './put-by-file.ts';

export function addConnectionCommands(program: Command, cli: Cli): void {
  const connection = group(
    program,
    'connection',
    'connections: where a system is, and how to log in to it, for the targets that name one',
  );
  addList(connection, cli);
  addShow(connection, cli);
  const what = { noun: 'connection', collection: 'connections' };
  withExamples(
    addPut(connection, cli, what),
    'firelock connection put github --file github.yaml',
    'firelock connection show github --json > github.json; firelock connection put github --file github.json',
  );
  withExamples(addDelete(connection, cli, what), 'firelock connection delete github --yes');
}

function addList(connection: Command, cli: Cli): void {
  const command = connection
    .command('list')
    .description('list connections, by their ids')
    .option('--q <text>', 'only with this text in the id or the description')
    .action(({ q, ...pages }: ListOptions & { q?: string }) =>
      showList<ConnectionAnswer>(
        cli,
        { path: 'connections', query: { q }, pages, hasTimes: false },
        (view) => [
          { title: 'ID', cell: ({ id }) => id },
          { title: 'URL', cell: ({ url }) => url, shrinks: true },
          { title: 'LOGIN', cell: ({ auth }) => auth?.type },
          { title: 'UPDATED', cell: ({ updatedAt }) => view.cellTime(updatedAt) },
          { title: 'DESCRIPTION', cell: ({ description }) => description, shrinks: true },
        ],
      ),
    );
  withExamples(listOptions(command), 'firelock connection list');
}

function addShow(connection: Command, cli: Cli): void {
  const command = connection
    .command('show')
    .alias('get')
    .description('show a connection, with *** in place of its secret values')
    .argument('<id>')
    .action((id: string) =>
      cli.show(cli.server().call('GET', pathOf('connections', id)), (shown: ConnectionAnswer, view) =>
        view.pairs([
          ['id', shown.id],
          ['description', shown.description],
          ['url', shown.url],
          ...fieldsOf('header', shown.headers),
          ...fieldsOf('auth', shown.auth),
          ...fieldsOf('tls', shown.tls),
          ['version', String(shown.version)],
          ['updated', view.time(shown.updatedAt)],
        ]),
      ),
    );
  withExamples(command, 'firelock connection show github');
}

/** Certificates are long: how they begin says which they are no better than that they are there. */
function fieldsOf(what: string, fields: object | null): [name: string, value: string | null][] {
  return Object.entries(fields ?? {}).flatMap(([name, value]: [string, unknown]) => {
    if (value === null) return [];
    if (typeof value !== 'string') return [[`${what} ${name}`, JSON.stringify(value)]];
    return [[`${what} ${name}`, value.startsWith('-----BEGIN') ? 'in PEM: --json shows it' : value]];
  });
}
