import type { Command } from 'commander';
import { numberOrText } from '../common/arguments.ts';
import { type Cli, withExamples } from '../cli.ts';
import { usageError } from '../exit-codes.ts';
import type { LimitAnswer } from '../server/answers.ts';
import { addNamedGroup, writeNamed } from './named-commands.ts';

interface SetOptions {
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
    .action((id: string, { max, description }: SetOptions) => {
      if (max === undefined && description === undefined)
        throw usageError('nothing to set; --help lists the options');
      return writeNamed<LimitAnswer>(cli, 'limit', id, (before) => ({
        description: description ?? before?.description,
        maxRunning: max === undefined ? before?.maxRunning : numberOrText(max),
      }));
    });
  withExamples(command, 'firelock limit set warehouse --max 3 --description "connections to the warehouse"');
}
