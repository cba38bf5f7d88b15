import type { Command } from 'commander';
import { type Cli, withExamples } from '../cli.ts';
import { INSTANT, instantText } from '../common/arguments.ts';
import type { FireTimeAnswer, SkippedAnswer, UpcomingAnswer } from '../server/answers.ts';
import { pathOf } from '../server/server-calls.ts';
import type { View } from '../terminal/output.ts';

export function addUpcomingFires(parent: Command, cli: Cli): void {
  const command = parent
    .command('upcoming')
    .description('the next fires of a schedule, also of a paused one')
    .argument('<id>')
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
export function fireTimeLines(items: readonly FireTimeAnswer[], view: View): string[] {
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
