import type { Command } from 'commander';
import { type Cli, group, withExamples } from '../cli.ts';
import { addDelete } from '../common/confirmed-actions.ts';
import { type ListOptions, listOptions, showList } from '../server/list-pages.ts';
import { pathOf } from '../server/server-calls.ts';
import type { View } from '../terminal/output.ts';
import type { Column } from '../terminal/table.ts';
import { writeOver } from '../common/write-over.ts';

interface NamedAnswer {
  id: string;
  description: string | null;
  version: number;
  updatedAt: string;
}

/** What the commands of a kind of named things say, beside its id, description, version and last change. */
interface NamedGroup<Answer> {
  noun: 'calendar' | 'limit' | 'connection' | 'notifier';
  description: string;
  columns: readonly Column<Answer>[];
  pairs: (thing: Answer) => [name: string, value: string | null][];
  /** Below all of these. */
  lines?: (thing: Answer) => readonly string[];
  /** An id, for examples. */
  example: string;
  /** What else is lost with one that is deleted. */
  warning?: string;
}

/** A group with the commands list, get and delete. */
export function addNamedGroup<Answer extends NamedAnswer>(
  program: Command,
  cli: Cli,
  kind: NamedGroup<Answer>,
): Command {
  const { noun, columns, example, warning } = kind;
  const parent = group(program, noun, kind.description);
  const path = `${noun}s`;
  const list = parent
    .command('list')
    .description(`list ${path}, by their ids`)
    .option('--q <text>', 'only with this text in the id or the description')
    .action(({ q, ...pages }: ListOptions & { q?: string }) =>
      showList<Answer>(cli, { path, query: { q }, pages, hasTimes: false }, (view) => [
        { title: 'ID', cell: ({ id }) => id },
        ...columns,
        { title: 'UPDATED', cell: ({ updatedAt }) => view.cellTime(updatedAt) },
        { title: 'DESCRIPTION', cell: (thing) => thing.description, shrinks: true },
      ]),
    );
  withExamples(listOptions(list), `firelock ${noun} list`);
  addGet(parent, cli, kind);
  const remove = addDelete(parent, cli, {
    noun,
    collection: path,
    ...(warning !== undefined && { warning }),
  });
  withExamples(remove, `firelock ${noun} delete ${example} --yes`);
  return parent;
}

function addGet<Answer extends NamedAnswer>(
  parent: Command,
  cli: Cli,
  { noun, pairs, lines, example }: NamedGroup<Answer>,
): void {
  const get = parent
    .command('get')
    .description(`show a ${noun}, with *** in place of secret values`)
    .argument('<id>')
    .action((id: string) =>
      cli.show(cli.server().call('GET', pathOf(`${noun}s`, id)), (thing: Answer, view: View) => [
        ...view.pairs([
          ['id', thing.id],
          ['description', thing.description],
          ...pairs(thing),
          ['version', String(thing.version)],
          ['updated', view.time(thing.updatedAt)],
        ]),
        ...(lines?.(thing) ?? []),
      ]),
    );
  withExamples(get, `firelock ${noun} get ${example}`);
}

/** Puts what is made of the thing as it is read. `before` null: there is none. */
export function setNamed<Answer extends NamedAnswer>(
  cli: Cli,
  of: { noun: NamedGroup<Answer>['noun']; id: string },
  bodyFrom: (before: Answer | null) => unknown,
): Promise<void> {
  return writeOver<Answer>(cli, of, ({ server, path, before, headers }) =>
    server.call('PUT', path, { body: bodyFrom(before), headers }),
  );
}
