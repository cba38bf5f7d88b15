import type { Command } from 'commander';
import { numberOrText } from '../common/arguments.ts';
import { type Cli, group, withExamples } from '../cli.ts';
import { addDelete } from '../common/confirmed-actions.ts';
import { usageError } from '../exit-codes.ts';
import type { LimitAnswer } from '../server/answers.ts';
import { type ListOptions, listOptions, showList } from '../server/list-pages.ts';
import { pathOf } from '../server/server-calls.ts';
import type { Column } from '../terminal/table.ts';

interface SetOptions {
  max?: string;
  description?: string;
}

export function addLimitCommands(program: Command, cli: Cli): void {
  const limit = group(
    program,
    'limit',
    'limits: how many of the runs that name one may be under way at once',
  );
  addList(limit, cli);
  const get = limit
    .command('get')
    .description('show a limit, and how many runs hold a place of it')
    .argument('<id>')
    .action((id: string) =>
      cli.show(cli.server().call('GET', pathOf('limits', id)), (limit: LimitAnswer, view) =>
        view.table(COLUMNS, [limit]),
      ),
    );
  withExamples(get, 'firelock limit get warehouse');
  addSet(limit, cli);
  const what = { noun: 'limit', collection: 'limits' };
  withExamples(addDelete(limit, cli, what), 'firelock limit delete warehouse --yes');
}

function addList(limit: Command, cli: Cli): void {
  const command = limit
    .command('list')
    .description('list limits, by their ids')
    .action((pages: ListOptions) => showList(cli, { path: 'limits', pages, hasTimes: false }, () => COLUMNS));
  withExamples(listOptions(command), 'firelock limit list');
}

function addSet(limit: Command, cli: Cli): void {
  const command = limit
    .command('set')
    .description('create a limit, or change what the options name and leave all else as it is')
    .argument('<id>')
    .option('--max <n>', 'how many may be under way at once')
    .option('--description <text>', 'what it is for')
    .action(async (id: string, { max, description }: SetOptions) => {
      if (max === undefined && description === undefined)
        throw usageError('nothing to set; --help lists the options');
      const server = cli.server();
      const path = pathOf('limits', id);
      const found = await server.find(path);
      const before = found === null ? null : (found.body() as LimitAnswer);
      const body = {
        description: description ?? before?.description,
        maxRunning: max === undefined ? before?.maxRunning : numberOrText(max),
      };
      const answer = await server.call('PUT', path, { body });
      const { maxRunning } = answer.body() as LimitAnswer;
      const said = `${found === null ? 'created' : 'set'} limit ${id}: ${maxRunning} at once`;
      const output = cli.output();
      if (output.isJson) output.note(said);
      output.show(answer.text, () => [said]);
    });
  withExamples(command, 'firelock limit set warehouse --max 3 --description "connections to the warehouse"');
}

const COLUMNS: Column<LimitAnswer>[] = [
  { title: 'ID', cell: ({ id }) => id },
  { title: 'MAX', cell: ({ maxRunning }) => maxRunning, align: 'right' },
  { title: 'RUNNING', cell: ({ running }) => running, align: 'right' },
  { title: 'WAITING', cell: ({ waiting }) => waiting, align: 'right' },
  { title: 'DESCRIPTION', cell: ({ description }) => description, shrinks: true },
];
