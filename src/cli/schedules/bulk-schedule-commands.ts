import type { Command } from 'commander';
import { INSTANT, collect, instantText } from '../common/arguments.ts';
import { type BulkOptions, actOnMatching, bulkOptions } from '../common/bulk.ts';
import { type Cli, group, withExamples } from '../cli.ts';

interface Options extends BulkOptions {
  label?: string[];
  q?: string;
  status?: string;
  late?: true;
  reason?: string;
  until?: string;
}

export function addBulkSchedules(parent: Command, cli: Cli): void {
  const bulk = group(parent, 'bulk', 'pause or resume all schedules that match');
  const act = (
    action: 'pause' | 'resume',
    { label, q, status, late, reason, until, ...options }: Options,
  ) => {
    const filter = { label, q, status, late };
    const body = { action, filter, reason, until: instantText(until, cli.surroundings) };
    const verb = action === 'pause' ? 'Pause' : 'Resume';
    return actOnMatching(cli, { path: 'schedules/bulk', verb, noun: 'schedules', body }, options);
  };
  const pause = filterOptions(bulk.command('pause').description('pause all schedules that match'))
    .option('--reason <text>', 'why, for those who look')
    .option('--until <instant>', `resume them by themselves then: ${INSTANT}`)
    .action((options: Options) => act('pause', options));
  withExamples(pause, 'firelock schedule bulk pause --label team:billing --dry-run');
  const resume = filterOptions(bulk.command('resume').description('resume all schedules that match')).action(
    (options: Options) => act('resume', options),
  );
  withExamples(resume, 'firelock schedule bulk resume --label team:billing --yes');
}

function filterOptions(command: Command): Command {
  const filtered = command
    .option('--label <key:value>', 'with this label; several: with all of them', collect)
    .option('--q <text>', 'with this text in the id or the description')
    .option('--status <status,…>', 'with one of these: active, paused, ended, error')
    .option('--late', 'that are late');
  return bulkOptions(filtered);
}
