import type { Command } from 'commander';
import { parseDocument } from 'yaml';
import { type Cli, group, withExamples } from '../cli.ts';
import { addDelete, writeOver } from '../common/changes.ts';
import { type ListOptions, listOptions, showList } from '../server/list-pages.ts';
import { pathOf } from '../server/server-calls.ts';
import type { View } from '../terminal/output.ts';
import type { Column } from '../terminal/table.ts';
import { fileText, numberOrText } from '../common/arguments.ts';
import { failure, usageError } from '../exit-codes.ts';
import type { ConnectionAnswer, LimitAnswer, NotifierAnswer, RunAnswer } from '../server/answers.ts';

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
  withExamples(addDelete(parent, cli, noun, warning), `firelock ${noun} delete ${example} --yes`);
  return parent;
}

function addGet<Answer extends NamedAnswer>(
  parent: Command,
  cli: Cli,
  { noun, pairs, lines, example }: NamedGroup<Answer>,
): void {
  const get = parent
    .command('get <id>')
    .description(`show a ${noun}, with *** in place of secret values`)
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

interface LimitOptions {
  max?: string;
  description?: string;
}

export function addLimitCommands(program: Command, cli: Cli): void {
  const limit = addNamedGroup<LimitAnswer>(program, cli, {
    ...{ noun: 'limit', example: 'warehouse' },
    description: 'limits: how many of the runs that name one may be under way at once',
    columns: [
      { title: 'MAX', cell: ({ maxRunning }) => maxRunning, align: 'right' },
      { title: 'RUNNING', cell: ({ running }) => running, align: 'right' },
      { title: 'WAITING', cell: ({ waiting }) => waiting, align: 'right' },
    ],
    pairs: ({ maxRunning, running, waiting }) => [
      ['max', String(maxRunning)],
      ['running', String(running)],
      ['waiting', String(waiting)],
    ],
  });
  const command = limit
    .command('set <id>')
    .description('create a limit, or change what the options name and leave all else as it is')
    .option('--max <n>', 'how many may be under way at once')
    .option('--description <text>', 'what it is for')
    .action((id: string, { max, description }: LimitOptions) => {
      if (max === undefined && description === undefined) throw usageError('nothing to set; --help lists the options');
      return setNamed<LimitAnswer>(cli, { noun: 'limit', id }, (before) => ({
        description: description ?? before?.description,
        maxRunning: max === undefined ? before?.maxRunning : numberOrText(max),
      }));
    });
  withExamples(command, 'firelock limit set warehouse --max 3 --description "connections to the warehouse"');
}

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

export function addNotifierCommands(program: Command, cli: Cli): void {
  const about = { noun: 'notifier', example: 'on-call' } as const;
  const notifier = addNamedGroup<NotifierAnswer>(program, cli, {
    ...about,
    description: 'notifiers: who is told when something breaks, and when it heals',
    columns: [
      { title: 'ENABLED', cell: ({ enabled }) => (enabled ? 'yes' : 'no') },
      { title: 'CHANNEL', cell: ({ channel }) => channel.type },
      { title: 'TO', cell: ({ channel }) => destinationOf(channel), shrinks: true },
      { title: 'ON', cell: ({ on }) => on.join(' '), shrinks: true },
    ],
    pairs: ({ enabled, on, filter, channel, remindSeconds, afterFailures, fallback }) => [
      ['enabled', enabled ? 'yes' : 'no'],
      ['on', on.join(' ')],
      ['schedules', filter.ids.join(' ') || null],
      ['labels', filter.label.join(' ') || null],
      ['channel', channel.type],
      ['to', destinationOf(channel)],
      ['reminds', remindSeconds === null ? 'never' : `every ${remindSeconds} s`],
      ['after failures', String(afterFailures)],
      ['fallback', fallback],
    ],
    warning: 'its messages that are under way end',
  });
  addSetByFile(notifier, cli, about);
  const test = notifier
    .command('test <id>')
    .description('send a message that says that it works; its run says what became of it')
    .action((id: string) =>
      cli.show(cli.server().call('POST', `${pathOf('notifiers', id)}/test`), ({ id: runId }: RunAnswer) => [
        `recorded as run ${runId}: firelock run get ${runId}`,
      ]),
    );
  withExamples(test, 'firelock notifier test on-call');
}

function destinationOf(channel: NotifierAnswer['channel']): string {
  if (channel.type === 'email') return channel.to.join(' ');
  const { connection, url } = channel.target;
  return connection === null ? url : `${connection}: ${url}`;
}

/** The command `set` of a group whose things have secret values. */
function addSetByFile(
  parent: Command,
  cli: Cli,
  { noun, example }: { noun: 'connection' | 'notifier'; example: string },
): void {
  const command = parent
    .command('set <id>')
    .description(`create a ${noun}, or replace it whole; *** keeps a secret value that is stored`)
    .requiredOption('--file <file>', 'its whole definition, as JSON or YAML (-: standard input)')
    .action(async (id: string, { file }: { file: string }) => {
      const body = definitionIn(await fileText(file, cli.surroundings), file);
      await setNamed(cli, { noun, id }, () => body);
    });
  const set = `firelock ${noun} set ${example} --file ${example}`;
  withExamples(command, `${set}.yaml`, `firelock ${noun} get ${example} --json > ${example}.json; ${set}.json`);
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
