import type { Command } from 'commander';
import { type Cli, withExamples } from '../cli.ts';
import type { NotifierAnswer, RunAnswer } from '../server/answers.ts';
import { pathOf } from '../server/server-calls.ts';
import { addNamedGroup } from './named-commands.ts';
import { addSetByFile } from './set-by-file.ts';

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
  addTest(notifier, cli);
}

function destinationOf(channel: NotifierAnswer['channel']): string {
  if (channel.type === 'email') return channel.to.join(' ');
  const { connection, url } = channel.target;
  return connection === null ? url : `${connection}: ${url}`;
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
