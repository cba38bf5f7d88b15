import type { Command } from 'commander';
import { addDelete } from '../common/delete.ts';
import { type Cli, withExamples } from '../cli.ts';

export function addDeleteSchedule(parent: Command, cli: Cli): void {
  const what = { noun: 'schedule', collection: 'schedules', warning: 'its open runs are abandoned' };
  withExamples(addDelete(parent, cli, what), 'firelock schedule delete invoices --yes');
}
