import type { Command } from 'commander';
import { INSTANT, instantText } from '../common/arguments.ts';
import { type Cli, withExamples } from '../cli.ts';
import type { TookOverAnswer } from '../server/answers.ts';
import type { View } from '../terminal/output.ts';

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
