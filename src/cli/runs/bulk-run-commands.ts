import type { Command } from 'commander';
import { numberOrText } from '../common/arguments.ts';
import { type BulkOptions, actOnMatching, bulkOptions } from '../common/bulk.ts';
import { type Cli, group, withExamples } from '../cli.ts';
import { type FilterInPeriod, filterOf, filterOptions, periodOf, periodOptions } from './run-filter.ts';

interface Options extends FilterInPeriod, BulkOptions {
  limit?: string;
}

export function addBulkRuns(parent: Command, cli: Cli): void {
  const bulk = group(parent, 'bulk', 'retry or cancel all runs that match');
  const add = (action: 'retry' | 'cancel', verb: string, description: string) => {
    const command = periodOptions(filterOptions(bulk.command(action).description(description))).option(
      '--limit <n>',
      'at most so many in one call (default: 1000)',
    );
    return bulkOptions(command).action((options: Options) => {
      const { limit } = options;
      const filter = { ...filterOf(options), ...periodOf(options, cli.surroundings) };
      const body = { action, filter, ...(limit !== undefined && { limit: numberOrText(limit) }) };
      return actOnMatching(cli, { path: 'runs/bulk', verb, noun: 'runs', body }, options);
    });
  };
  withExamples(
    add('retry', 'Retry', 'send all ended runs again that match'),
    'firelock run bulk retry --schedule invoices --status failed --from -1d --dry-run',
    'firelock run bulk retry --label team:billing --status failed,unknown --all --yes',
  );
  withExamples(
    add('cancel', 'Cancel', 'end all open runs that match'),
    'firelock run bulk cancel --schedule invoices --status waiting,pending --yes',
  );
}
