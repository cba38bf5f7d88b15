import type { Command } from 'commander';
import { parseDocument } from 'yaml';
import { type Cli, withExamples } from '../cli.ts';
import { fileText, numberOrText } from '../common/arguments.ts';
import { failure, usageError } from '../exit-codes.ts';
import type { ConnectionAnswer, LimitAnswer, NotifierAnswer, RunAnswer } from '../server/answers.ts';
import { pathOf } from '../server/server-calls.ts';
import { addNamedGroup, setNamed } from './named-commands.ts';

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
    .command('set')
    .description('create a limit, or change what the options name and leave all else as it is')
    .argument('<id>')
    .option('--max <n>', 'how many may be under way at once')
    .option('--description <text>', 'what it is for')
    .action((id: string, { max, description }: LimitOptions) => {
      if (max === undefined && description === undefined)
        throw usageError('nothing to set; --help lists the options');
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
    .command('test')
    .description('send a message that says that it works; its run says what became of it')
    .argument('<id>')
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
    .command('set')
    .description(`create a ${noun}, or replace it whole; *** keeps a secret value that is stored`)
    .argument('<id>')
    .requiredOption('--file <file>', 'its whole definition, as JSON or YAML (-: standard input)')
    .action(async (id: string, { file }: { file: string }) => {
      const body = definitionIn(await fileText(file, cli.surroundings), file);
      await setNamed(cli, { noun, id }, () => body);
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
