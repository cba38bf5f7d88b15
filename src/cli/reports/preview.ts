import type { Command } from 'commander';
import { INSTANT, collect, instantText, numberOrText } from '../common/arguments.ts';
import { type Cli, withExamples } from '../cli.ts';
import { usageError } from '../exit-codes.ts';
import { fieldsSet, over } from '../schedules/definition-options.ts';
import { fireTimeLines } from '../schedules/upcoming-fires.ts';
import type { PreviewAnswer } from '../server/answers.ts';

interface Options {
  every?: string;
  timezone?: string;
  from?: string;
  count?: string;
  id?: string;
  set?: string[];
}

export function addPreview(program: Command, cli: Cli): void {
  const command = program
    .command('preview')
    .description('what an expression means, and when it fires; nothing is created')
    .argument('[cron...]', 'a cron expression; several: when any of them fires')
    .option('--every <seconds>', 'an interval in its place')
    .option('--timezone <zone>', 'the IANA zone of the expression')
    .option('--from <instant>', `fires after it: ${INSTANT}`)
    .option('--count <n>', 'how many (default: 10)')
    .option('--id <id>', 'the schedule it is for: H and ? are picked by its id')
    .option(
      '--set <path=json>',
      'a rule of its days, as exclude.weekdays=\'["sat","sun"]\'; several',
      collect,
    )
    .action((cron: string[], options: Options) => preview(cli, cron, options));
  withExamples(
    command,
    'firelock preview "30 2 * * *" --timezone Europe/Berlin --count 3',
    'firelock preview "0 9 * * MON-FRI" "0 11 * * SAT"',
    'firelock preview "0 9 * * *" --set exclude.weekdays=\'["sat","sun"]\' --set pick=\'{"of":"month","nth":[-1]}\'',
  );
}

function preview(
  cli: Cli,
  cron: string[],
  { every, timezone, from, count, id, set }: Options,
): Promise<void> {
  if (cron.length === 0 && every === undefined) throw usageError('give a cron expression or --every');
  const body = fieldsSet(set).reduce(over, {
    cron: cron.length > 1 ? cron : cron[0],
    everySeconds: numberOrText(every),
    count: numberOrText(count),
    from: instantText(from, cli.surroundings),
    timezone,
    id,
  });
  const asked = cli.server().call('POST', 'preview', { body });
  return cli.show(asked, ({ description, items, assumes }: PreviewAnswer, view) => [
    description,
    ...fireTimeLines(items, view),
    ...(assumes === undefined ? [] : [`assumed: ${assumes}`]),
  ]);
}
