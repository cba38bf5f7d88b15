import type { Command } from 'commander';
import { INSTANT, instantText } from '../common/arguments.ts';
import { type Cli, group, withExamples } from '../cli.ts';
import type { MaintenanceAnswer, TookOverAnswer } from '../server/answers.ts';
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
    .description('plan nothing; afterwards the catchUp of each schedule decides about the fires that were due')
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

export function addTakeOver(program: Command, cli: Cli): void {
  const takeOver = program
    .command('take-over')
    .description(
      'at a standby that only observes, once the other installation has stopped: fire what was due from a moment on',
    )
    .requiredOption('--since <instant>', `skip what was due before: ${INSTANT}`)
    .action(({ since }: { since: string }) => {
      const body = { since: instantText(since, cli.surroundings) };
      return cli.show(cli.server().call('POST', 'take-over', { body }), tookOverLines);
    });
  withExamples(takeOver, 'firelock take-over --since 2025-11-20T15:12:00Z');
}

function tookOverLines(answer: TookOverAnswer, view: View): string[] {
  const { at, since, moved, skipped, notMoved, unknown, asked, left, observesOn } = answer;
  return [
    `taken over at ${view.time(at)}: what was due since ${view.time(since)}, and has no run yet, is fired by the catchUp of each schedule`,
    `fires due before that, now skipped: ${skipped}, of ${moved} schedules`,
    ...notMoved.map(({ scheduleId, error }) => `schedule ${scheduleId} was not moved: ${error}`),
    `pending at-most-once runs that may have been sent, now marked unknown: ${unknown}`,
    `pending runs whose target will first be asked whether it has them: ${asked}`,
    `pending runs that will be sent under their ids: ${left}`,
    observesOn
      ? 'nothing fires yet: start the instances without FIRELOCK_OBSERVE'
      : 'the instances begin to work within seconds',
  ];
}
