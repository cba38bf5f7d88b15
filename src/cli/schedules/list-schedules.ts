import type { Command } from 'commander';
import { type Cli, withExamples } from '../cli.ts';
import { collect } from '../common/arguments.ts';
import type { ScheduleAnswer } from '../server/answers.ts';
import { type ListOptions, listOptions, moreNote, readPages } from '../server/list-pages.ts';
import { paintStatus } from '../terminal/paint.ts';
import type { Column } from '../terminal/table.ts';
import type { View } from '../terminal/output.ts';
import { labelsText, statusText, triggerText } from './schedule-text.ts';

interface Options extends ListOptions {
  status?: string;
  label?: string[];
  q?: string;
  late?: true;
}

export function addListSchedules(parent: Command, cli: Cli): void {
  const command = parent
    .command('list')
    .description('list schedules, by their ids')
    .option('--status <status,…>', 'only with one of these: active, paused, ended, error')
    .option('--label <key:value>', 'only with this label; several: with all of them', collect)
    .option('--q <text>', 'only with this text in the id or the description')
    .option('--late', 'only those that are late')
    .action(async ({ status, label, q, late, ...pages }: Options) => {
      const query = { status, label, q, late };
      const found = await readPages<ScheduleAnswer>(cli.server(), 'schedules', query, pages);
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
    'firelock schedule list --label team:billing --status paused,error',
    'firelock schedule list --all --json | jq -r ".items[].id"',
  );
}

function columnsOf(view: View): Column<ScheduleAnswer>[] {
  return [
    { title: 'ID', cell: ({ id }) => id, shrinks: true },
    { title: 'STATUS', cell: statusText, paint: paintStatus },
    { title: 'WHEN', cell: triggerText, shrinks: true },
    { title: 'ZONE', cell: ({ timezone }) => timezone, shrinks: true, mayGo: true },
    { title: 'NEXT FIRE', cell: ({ nextFireAt }) => view.cellTime(nextFireAt) },
    { title: 'LAST FIRE', cell: ({ lastFireAt }) => view.cellTime(lastFireAt), isExtra: true },
    { title: 'LABELS', cell: ({ labels }) => labelsText(labels), isExtra: true },
    { title: 'DESCRIPTION', cell: ({ description }) => description, isExtra: true },
  ];
}
