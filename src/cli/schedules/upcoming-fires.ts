import type { Command } from 'commander';
import { INSTANT, instantText } from '../common/arguments.ts';
import { type Cli, withExamples } from '../cli.ts';
import { fireTimeLines } from '../common/fire-time-lines.ts';
import type { UpcomingAnswer } from '../server/answers.ts';
import { pathOf } from '../server/server-calls.ts';

interface Options {
  count?: string;
  from?: string;
}

export function addUpcomingFires(parent: Command, cli: Cli): void {
  const command = parent
    .command('upcoming')
    .description('the next fires of a schedule, also of a paused one')
    .argument('<id>')
    .option('--count <n>', 'how many (default: 10)')
    .option('--from <instant>', `those after it: ${INSTANT}`)
    .action(async (id: string, { count, from }: Options) => {
      const query = { count, from: instantText(from, cli.surroundings) };
      const answer = await cli.server().call('GET', pathOf('schedules', id, 'upcoming'), { query });
      const { items } = answer.body() as UpcomingAnswer;
      cli.output().show(answer.text, (view) => fireTimeLines(items, view));
    });
  withExamples(command, 'firelock schedule upcoming invoices --count 3');
}
