import type { Command } from 'commander';
import { type Cli, withExamples } from '../cli.ts';
import type { RunAnswer } from '../server/answers.ts';
import { type ListOptions, listOptions, moreNote, readPages } from '../server/list-pages.ts';
import { type FilterInPeriod, filterOf, filterOptions, periodOf, periodOptions } from './run-filter.ts';
import { runColumns } from './run-table.ts';

interface Options extends FilterInPeriod, ListOptions {
  key?: string;
}

export function addListRuns(parent: Command, cli: Cli): void {
  const command = filterOptions(parent.command('list').description('list runs, the newest first'))
    .option('--key <key>', 'with this idempotency key')
    .action(async (options: Options) => {
      const { key } = options;
      const query = { ...filterOf(options), ...periodOf(options, cli.surroundings), key };
      const found = await readPages<RunAnswer>(cli.server(), 'runs', query, options);
      cli
        .output()
        .show(found, (view) => [
          ...view.table(runColumns(view), found.items),
          view.zoneNote,
          ...moreNote(found),
        ]);
    });
  withExamples(
    listOptions(periodOptions(command)),
    'firelock run list --schedule invoices --limit 5',
    'firelock run list --status failed,unknown --from -1d --json | jq -r ".items[].id"',
  );
}
