import type { Command } from 'commander';
import { type Cli, group, withExamples } from '../cli.ts';
import { INSTANT, collect, instantText } from '../common/arguments.ts';
import { type BulkOptions, actOnMatching, bulkOptions } from '../common/confirmed-actions.ts';
import type { ScheduleAnswer } from '../server/answers.ts';
import { pathOf } from '../server/server-calls.ts';

interface PauseOptions {
  reason?: string;
  until?: string;
}

export function addPauseSchedule(parent: Command, cli: Cli): void {
  const pause = parent
    .command('pause')
    .description('plan no fires of a schedule, until it is resumed')
    .argument('<id>')
    .option('--reason <text>', 'the reason, which is shown with it')
    .option('--until <instant>', `resume it by itself then: ${INSTANT}`)
    .action((id: string, { reason: pauseReason, until }: PauseOptions) =>
      write(cli, id, { enabled: false, pauseReason, pauseUntil: instantText(until, cli.surroundings) }),
    );
  withExamples(pause, 'firelock schedule pause invoices --reason "the bank is closed" --until +3d');
  const resume = parent
    .command('resume')
    .description('let a paused schedule fire again')
    .argument('<id>')
    .action((id: string) => write(cli, id, { enabled: true }));
  withExamples(resume, 'firelock schedule resume invoices');
}

function write(cli: Cli, id: string, body: object): Promise<void> {
  const asked = cli.server().call('PATCH', pathOf('schedules', id), { body });
  return cli.show(asked, ({ status, nextFireAt, pauseUntil }: ScheduleAnswer, { time }) => {
    const until = pauseUntil === null ? '' : ` until ${time(pauseUntil)}`;
    const next = nextFireAt === null ? '' : `; next fire ${time(nextFireAt)}`;
    return [`schedule ${id} is ${status}${until}${next}`];
  });
}

interface BulkPauseOptions extends BulkOptions, PauseOptions {
  label?: string[];
  q?: string;
  status?: string;
  late?: true;
}

export function addBulkSchedules(parent: Command, cli: Cli): void {
  const bulk = group(parent, 'bulk', 'pause or resume all schedules that match');
  const add = (action: 'pause' | 'resume', verb: string) =>
    filterOptions(bulk.command(action).description(`${action} all schedules that match`)).action(
      ({ label, q, status, late, reason, until, ...options }: BulkPauseOptions) => {
        const filter = { label, q, status, late };
        const body = { action, filter, reason, until: instantText(until, cli.surroundings) };
        return actOnMatching(cli, { path: 'schedules/bulk', verb, noun: 'schedules', body }, options);
      },
    );
  const pause = add('pause', 'Pause')
    .option('--reason <text>', 'the reason, which is shown with it')
    .option('--until <instant>', `resume them by themselves then: ${INSTANT}`);
  withExamples(pause, 'firelock schedule bulk pause --label team:billing --dry-run');
  withExamples(add('resume', 'Resume'), 'firelock schedule bulk resume --label team:billing --yes');
}

function filterOptions(command: Command): Command {
  const filtered = command
    .option('--label <key:value>', 'with this label; several: with all of them', collect)
    .option('--q <text>', 'with this text in the id or the description')
    .option('--status <status,…>', 'with one of these: active, paused, ended, error')
    .option('--late', 'that are late');
  return bulkOptions(filtered);
}
