import type { Command } from 'commander';
import type { Cli } from '../cli.ts';
import type { ConnectionAnswer } from '../server/answers.ts';
import { addNamedGroup } from './named-commands.ts';
import { addSetByFile } from './set-by-file.ts';

export function addConnectionCommands(program: Command, cli: Cli): void {
  const about = { noun: 'connection', example: 'github' } as const;
  const connection = addNamedGroup<ConnectionAnswer>(program, cli, {
    ...about,
    description: 'connections: where a system is, and how to log in to it, for the targets that name one',
    columns: [
      { title: 'URL', cell: ({ url }) => url, shrinks: true },
      { title: 'LOGIN', cell: ({ auth }) => auth?.type },
    ],
    pairs: ({ url, headers, auth, tls }) => [
      ['url', url],
      ...fieldsOf('header', headers),
      ...fieldsOf('auth', auth),
      ...fieldsOf('tls', tls),
    ],
  });
  addSetByFile(connection, cli, about);
}

/** Certificates are long: how they begin says which they are no better than that they are there. */
function fieldsOf(what: string, fields: object | null): [name: string, value: string | null][] {
  return Object.entries(fields ?? {}).flatMap(([name, value]: [string, unknown]) => {
    if (value === null) return [];
    if (typeof value !== 'string') return [[`${what} ${name}`, JSON.stringify(value)]];
    return [[`${what} ${name}`, value.startsWith('-----BEGIN') ? 'in PEM: --json shows it' : value]];
  });
}
