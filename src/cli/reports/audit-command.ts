import type { Command } from 'commander';
import { INSTANT, instantText } from '../common/arguments.ts';
import { type Cli, withExamples } from '../cli.ts';
import type { AuditAnswer } from '../server/answers.ts';
import { type ListOptions, listOptions, moreNote, readPages } from '../server/list-pages.ts';
import type { View } from '../terminal/output.ts';
import type { Column } from '../terminal/table.ts';

interface Options extends ListOptions {
  by?: string;
  action?: string;
  schedule?: string;
  from?: string;
  to?: string;
}

export function addAudit(program: Command, cli: Cli): void {
  const command = program
    .command('audit')
    .description('who did what: every call that changed something, and every one that was refused')
    .option('--by <name>', 'of the token with this name')
    .option('--action <action,…>', 'such as schedule.update, run.retry, maintenance.on')
    .option('--schedule <id>', 'about this schedule')
    .option('--from <instant>', `then or later: ${INSTANT}`)
    .option('--to <instant>', 'earlier than that')
    .action(async ({ by, action, schedule, from, to, ...pages }: Options) => {
      const { surroundings } = cli;
      const period = { from: instantText(from, surroundings), to: instantText(to, surroundings) };
      const query = { by, action, scheduleId: schedule, ...period };
      const found = await readPages<AuditAnswer>(cli.server(), 'audit', query, pages);
      cli
        .output()
        .show(found, (view) => [
          ...view.table(columnsOf(view), found.items),
          view.zoneNote,
          ...moreNote(found),
        ]);
    });
  withExamples(
    listOptions(command),
    'firelock audit --schedule invoices --from -7d',
    'firelock audit --by ci --action schedule.update,schedule.delete',
  );
}

function columnsOf(view: View): Column<AuditAnswer>[] {
  return [
    { title: 'AT', cell: ({ at }) => view.cellTime(at) },
    { title: 'BY', cell: ({ by }) => by, shrinks: true },
    { title: 'ROLE', cell: ({ role }) => role, isExtra: true },
    { title: 'ACTION', cell: ({ action }) => action },
    { title: 'SUBJECT', cell: ({ subject }) => textOf(subject), shrinks: true },
    { title: 'OUTCOME', cell: ({ outcome }) => outcome },
    { title: 'DETAIL', cell: ({ detail }) => textOf(detail), shrinks: true },
  ];
}

function textOf(value: unknown): string {
  return typeof value === 'string'
    ? value
    : value === null || value === undefined
      ? ''
      : JSON.stringify(value);
}
