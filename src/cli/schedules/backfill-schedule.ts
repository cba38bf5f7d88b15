import type { Command } from 'commander';
import { INSTANT, instantText, numberOrText } from '../common/arguments.ts';
import { type Cli, withExamples } from '../cli.ts';
import type { BackfillAnswer } from '../server/answers.ts';
import { pathOf } from '../server/server-calls.ts';

interface Options {
  from: string;
  to: string;
  limit?: string;
}

export function addBackfillSchedule(parent: Command, cli: Cli): void {
  const command = parent
    .command('backfill')
    .description('make the fires of a past period that have no run, or whose run was skipped or abandoned')
    .argument('<id>')
    .requiredOption('--from <instant>', `inclusive: ${INSTANT}`)
    .requiredOption('--to <instant>', 'exclusive, and not later than now')
    .option('--limit <n>', 'at most so many (default: 1000)')
    .action(async (id: string, { from, to, limit }: Options) => {
      const body = {
        from: instantText(from, cli.surroundings),
        to: instantText(to, cli.surroundings),
        ...(limit !== undefined && { limit: numberOrText(limit) }),
      };
      const answer = await cli.server().call('POST', pathOf('schedules', id, 'backfill'), { body });
      const { created, existing, remainingFrom } = answer.body() as BackfillAnswer;
      cli
        .output()
        .show(answer.text, ({ time }) => [
          `${created} runs are to be handed off, ${existing} fires had a run already`,
          ...(remainingFrom === null
            ? []
            : [`there are more: go on with --from ${remainingFrom} (${time(remainingFrom)})`]),
        ]);
    });
  withExamples(command, 'firelock schedule backfill invoices --from -8d --to -1d');
}
