import type { Command } from 'commander';
import { type Period, collect } from '../common/arguments.ts';

export interface RunFilterOptions {
  schedule?: string;
  label?: string[];
  batch?: string;
  status?: string;
  trigger?: string;
}

/** Options of every command about many runs. */
export function filterOptions(command: Command): Command {
  return command
    .option('--schedule <id>', 'of this schedule')
    .option(
      '--label <key:value>',
      'with this label, of its own or of its schedule; several: all of them',
      collect,
    )
    .option('--batch <id>', 'of this batch')
    .option(
      '--status <status,…>',
      'with one of these: waiting, pending, running, succeeded, failed, unknown, abandoned, skipped, cancelled',
    )
    .option(
      '--trigger <trigger,…>',
      'of one of these: schedule, catchUp, manual, backfill, after, api, notify',
    );
}

/** The filter with the names of the API. */
export function filterOf({ schedule, label, batch, status, trigger }: RunFilterOptions) {
  return { scheduleId: schedule, label, batchId: batch, status, trigger };
}

export type FilterInPeriod = RunFilterOptions & Period;
