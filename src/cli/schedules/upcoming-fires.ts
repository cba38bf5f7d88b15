import type { Command } from 'commander';
import { type Cli, withExamples } from '../cli.ts';
import { collect, INSTANT, instantText, numberOrText } from '../common/arguments.ts';
import type { FireTimeAnswer, PreviewAnswer, SkippedAnswer, UpcomingAnswer } from '../server/answers.ts';
import { pathOf } from '../server/server-calls.ts';
import type { View } from '../terminal/output.ts';
import { usageError } from '../exit-codes.ts';
import { fieldsSet, over } from './definition-options.ts';

export function addUpcomingFires(parent: Command, cli: Cli): void {
  const command = parent
    .command('upcoming <id>')
    .description('the next fires of a schedule, also of a paused one')
    .option('--count <n>', 'how many (default: 10)')
    .option('--from <instant>', `those after it: ${INSTANT}`)
    .action((id: string, { count, from }: { count?: string; from?: string }) => {
      const query = { count, from: instantText(from, cli.surroundings) };
      const asked = cli.server().call('GET', pathOf('schedules', id, 'upcoming'), { query });
      return cli.show(asked, ({ items, warnings }: UpcomingAnswer, view) => [
        ...fireTimeLines(items, view),
        ...warnings.map((one) => `the calendar ${one.calendar} says nothing of days after ${one.validUntil}`),
      ]);
    });
  withExamples(command, 'firelock schedule upcoming invoices --count 3');
}

/** Fires to come, one on each line. `local` is in the zone of the schedule, and not in the reader's. */
function fireTimeLines(items: readonly FireTimeAnswer[], view: View): string[] {
  if (items.length === 0) return ['no upcoming fires'];
  const remark = ({ note, dueAt, skipped, skipReason }: FireTimeAnswer) =>
    [
      note,
      skipped && (skipReason === undefined ? 'skipped' : `skipped: ${skipReason}`),
      dueAt === undefined ? undefined : `with its jitter ${dueAt}`,
    ]
      .filter((part) => typeof part === 'string')
      .join('; ');
  return [
    ...view.table(
      [
        { title: 'FIRES AT', cell: ({ fireAt }) => view.cellTime(fireAt) },
        { title: 'IN ITS ZONE', cell: ({ local }) => local.replace('T', ' ').replace('.000', '') },
        { title: 'REMARK', cell: (item) => remark(item), shrinks: true },
      ],
      items,
    ),
    view.zoneNote,
  ];
}

export function addSkipFire(parent: Command, cli: Cli): void {
  const add = (verb: 'skip' | 'unskip', description: string) =>
    parent
      .command(verb)
      .description(description)
      .argument('<id>')
      .argument('<fireAt>', 'the moment of the fire')
      .action((id: string, at: string, { reason }: { reason?: string }) => {
        const body = { fireAt: instantText(at, cli.surroundings), reason };
        const asked = cli.server().call('POST', pathOf('schedules', id, verb), { body });
        return cli.show(asked, ({ fireAt, skipped }: SkippedAnswer, { time }) => [
          `schedule ${id} ${skipped ? 'will not fire' : 'will fire'} at ${time(fireAt)}`,
        ]);
      });
  const skip = add('skip', 'skip one coming fire; "schedule upcoming" lists them').option(
    '--reason <text>',
    'the reason, which is shown with it',
  );
  withExamples(skip, 'firelock schedule skip invoices 2030-12-25T02:00:00+01:00 --reason "Christmas"');
  const unskip = add('unskip', 'take back the skip of a coming fire');
  withExamples(unskip, 'firelock schedule unskip invoices 2030-12-25T02:00:00+01:00');
}

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
    .option('--set <path=json>', 'a rule of its days, as exclude.weekdays=\'["sat","sun"]\'; several', collect)
    .action((cron: string[], options: Options) => preview(cli, cron, options));
  withExamples(
    command,
    'firelock preview "30 2 * * *" --timezone Europe/Berlin --count 3',
    'firelock preview "0 9 * * MON-FRI" "0 11 * * SAT"',
    'firelock preview "0 9 * * *" --set exclude.weekdays=\'["sat","sun"]\' --set pick=\'{"of":"month","nth":[-1]}\'',
  );
}

function preview(cli: Cli, cron: string[], { every, timezone, from, count, id, set }: Options): Promise<void> {
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
