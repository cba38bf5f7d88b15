import type { Command } from 'commander';
import { INSTANT, collect, instantText } from '../common/arguments.ts';
import type { Surroundings } from '../surroundings.ts';

export interface RunFilterOptions {
  schedule?: string;
  label?: string[];
  status?: string;
  trigger?: string;
}

interface Period {
  from?: string;
  to?: string;
}

/** Options of every command about many runs. */
export function filterOptions(command: Command): Command {
  return command
    .option('--schedule <id>', 'of this schedule')
    .option('--label <key:value>', 'of schedules with this label; several: with all of them', collect)
    .option(
      '--status <status,…>',
      'with one of these: waiting, pending, running, succeeded, failed, unknown, abandoned, skipped, cancelled',
    )
    .option('--trigger <trigger,…>', 'of one of these: schedule, catchUp, manual, backfill, after, api');
}

export function periodOptions(command: Command): Command {
  return command
    .option('--from <instant>', `scheduled for then or later: ${INSTANT}`)
    .option('--to <instant>', 'scheduled for earlier than that');
}

/** The filter with the names of the API. */
export function filterOf({ schedule, label, status, trigger }: RunFilterOptions) {
  return { scheduleId: schedule, label, status, trigger };
}

export function periodOf({ from, to }: Period, around: Pick<Surroundings, 'now'>) {
  return { from: instantText(from, around), to: instantText(to, around) };
}

export type FilterInPeriod = RunFilterOptions & Period;
