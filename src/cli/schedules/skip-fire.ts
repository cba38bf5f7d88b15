import type { Command } from 'commander';
import { instantText } from '../common/arguments.ts';
import { type Cli, withExamples } from '../cli.ts';
import type { SkippedAnswer } from '../server/answers.ts';
import { pathOf } from '../server/server-calls.ts';

export function addSkipFire(parent: Command, cli: Cli): void {
  const act = async (verb: 'skip' | 'unskip', id: string, fireAt: string, reason?: string): Promise<void> => {
    const body = { fireAt: instantText(fireAt, cli.surroundings), reason };
    const answer = await cli.server().call('POST', pathOf('schedules', id, verb), { body });
    const done = answer.body() as SkippedAnswer;
    cli
      .output()
      .show(answer.text, ({ time }) => [
        `schedule ${id} ${done.skipped ? 'does not fire' : 'fires'} at ${time(done.fireAt)}`,
      ]);
  };
  const skip = parent
    .command('skip')
    .description('do not make one fire that is still to come; "schedule upcoming" says which there are')
    .argument('<id>')
    .argument('<fireAt>', 'the moment of the fire')
    .option('--reason <text>', 'why, for those who look')
    .action((id: string, fireAt: string, { reason }: { reason?: string }) => act('skip', id, fireAt, reason));
  withExamples(skip, 'firelock schedule skip invoices 2030-12-25T02:00:00+01:00 --reason "Christmas"');
  const unskip = parent
    .command('unskip')
    .description('make a fire after all that was to be skipped')
    .argument('<id>')
    .argument('<fireAt>', 'the moment of the fire')
    .action((id: string, fireAt: string) => act('unskip', id, fireAt));
  withExamples(unskip, 'firelock schedule unskip invoices 2030-12-25T02:00:00+01:00');
}
