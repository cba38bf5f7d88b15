import type { Command } from 'commander';
import { INSTANT, instantText } from '../common/arguments.ts';
import { type Cli, group, withExamples } from '../cli.ts';
import type { MaintenanceAnswer } from '../server/answers.ts';
import type { View } from '../terminal/output.ts';

interface OnOptions {
  reason?: string;
  until?: string;
  hold?: true;
}

export function addMaintenanceCommands(program: Command, cli: Cli): void {
  const maintenance = group(program, 'maintenance', 'maintenance: while it is on, no instance plans');
  const call = (method: 'GET' | 'POST', body?: object) =>
    cli.show(cli.server().call(method, 'maintenance', { body }), sentence);
  const on = maintenance
    .command('on')
    .description(
      'plan nothing; afterwards the catchUp of each schedule decides about the fires that were due',
    )
    .option('--reason <text>', 'the reason, which is shown with it')
    .option('--until <instant>', `end it by itself then: ${INSTANT}`)
    .option('--hold', 'hand off nothing either')
    .action(({ reason, until, hold }: OnOptions) => {
      const dispatch = hold ? 'hold' : undefined;
      return call('POST', { on: true, reason, until: instantText(until, cli.surroundings), dispatch });
    });
  withExamples(on, 'firelock maintenance on --reason "the warehouse moves" --until +2h --hold');
  const off = maintenance
    .command('off')
    .description('plan again')
    .action(() => call('POST', { on: false }));
  withExamples(off, 'firelock maintenance off');
  const status = maintenance
    .command('status')
    .description('whether it is on, why, and until when')
    .action(() => call('GET'));
  withExamples(status, 'firelock maintenance status');
}

function sentence({ on, reason, until, dispatch, since }: MaintenanceAnswer, view: View): string[] {
  if (!on) return ['maintenance is off'];
  const parts = [
    `maintenance is on since ${view.time(since)}`,
    until === null ? 'until it is turned off' : `until ${view.time(until)}`,
    dispatch === 'hold' ? 'nothing is handed off' : 'recorded runs are handed off',
    reason === null ? null : `because: ${reason}`,
  ];
  return [parts.filter((part) => part !== null).join('; ')];
}
