import type { Command } from 'commander';
import { type Cli, group, withExamples } from '../cli.ts';
import { addDelete } from '../common/confirmed-actions.ts';
import type { NotifierAnswer, RunAnswer } from '../server/answers.ts';
import { type ListOptions, listOptions, showList } from '../server/list-pages.ts';
import { pathOf } from '../server/server-calls.ts';
import { addPut } from './put-by-file.ts';

const WHAT = { noun: 'notifier', collection: 'notifiers' };

export function addNotifierCommands(program: Command, cli: Cli): void {
  const notifier = group(
    program,
    'notifier',
    'notifiers: who is told when something breaks, and when it heals',
  );
  addList(notifier, cli);
  addShow(notifier, cli);
  withExamples(
    addPut(notifier, cli, WHAT),
    'firelock notifier put on-call --file on-call.yaml',
    'firelock notifier show on-call --json > on-call.json; firelock notifier put on-call --file on-call.json',
  );
  addTest(notifier, cli);
  const warning = 'its messages that are under way end';
  withExamples(addDelete(notifier, cli, { ...WHAT, warning }), 'firelock notifier delete on-call --yes');
}

function addList(notifier: Command, cli: Cli): void {
  const command = notifier
    .command('list')
    .description('list notifiers, by their ids')
    .option('--q <text>', 'only with this text in the id or the description')
    .action(({ q, ...pages }: ListOptions & { q?: string }) =>
      showList<NotifierAnswer>(cli, { path: 'notifiers', query: { q }, pages, hasTimes: false }, (view) => [
        { title: 'ID', cell: ({ id }) => id },
        { title: 'ENABLED', cell: ({ enabled }) => (enabled ? 'yes' : 'no') },
        { title: 'CHANNEL', cell: ({ channel }) => channel.type },
        { title: 'TO', cell: ({ channel }) => destinationOf(channel), shrinks: true },
        { title: 'ON', cell: ({ on }) => on.join(' '), shrinks: true },
        { title: 'UPDATED', cell: ({ updatedAt }) => view.cellTime(updatedAt) },
        { title: 'DESCRIPTION', cell: ({ description }) => description, shrinks: true },
      ]),
    );
  withExamples(listOptions(command), 'firelock notifier list');
}

function destinationOf(channel: NotifierAnswer['channel']): string {
  if (channel.type === 'email') return channel.to.join(' ');
  const { connection, url } = channel.target;
  return connection === null ? url : `${connection}: ${url}`;
}

function addShow(notifier: Command, cli: Cli): void {
  const command = notifier
    .command('show')
    .alias('get')
    .description('show a notifier, with *** in place of its secret values')
    .argument('<id>')
    .action((id: string) =>
      cli.show(cli.server().call('GET', pathOf('notifiers', id)), (shown: NotifierAnswer, view) =>
        view.pairs([
          ['id', shown.id],
          ['description', shown.description],
          ['enabled', shown.enabled ? 'yes' : 'no'],
          ['on', shown.on.join(' ')],
          ['schedules', shown.filter.ids.join(' ') || null],
          ['labels', shown.filter.label.join(' ') || null],
          ['channel', shown.channel.type],
          ['to', destinationOf(shown.channel)],
          ['reminds', shown.remindSeconds === null ? 'never' : `every ${shown.remindSeconds} s`],
          ['after failures', String(shown.afterFailures)],
          ['fallback', shown.fallback],
          ['version', String(shown.version)],
          ['updated', view.time(shown.updatedAt)],
        ]),
      ),
    );
  withExamples(command, 'firelock notifier show on-call');
}

function addTest(notifier: Command, cli: Cli): void {
  const command = notifier
    .command('test')
    .description('send a message that says that it works; its run says what became of it')
    .argument('<id>')
    .action((id: string) =>
      cli.show(cli.server().call('POST', `${pathOf('notifiers', id)}/test`), ({ id: runId }: RunAnswer) => [
        `recorded as run ${runId}: firelock run get ${runId}`,
      ]),
    );
  withExamples(command, 'firelock notifier test on-call');
}
