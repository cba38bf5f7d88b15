import type { Command } from 'commander';
import { type Cli, withExamples } from '../cli.ts';
import type { RunAnswer } from '../server/answers.ts';
import { pathOf } from '../server/server-calls.ts';

export function addActOnRun(parent: Command, cli: Cli): void {
  const add = (verb: 'retry' | 'cancel', description: string) => {
    const command = parent
      .command(verb)
      .description(description)
      .argument('<id>')
      .action(async (id: string) => {
        const answer = await cli.server().call('POST', pathOf('runs', id, verb));
        const { status } = answer.body() as RunAnswer;
        cli.output().show(answer.text, () => [`run ${id} is ${status}`]);
      });
    withExamples(command, `firelock run ${verb} 0199c1f0-7a00-7b3c-9a5e-2f4d1c8b7a60`);
  };
  add('retry', 'send an ended run again, under its id');
  add('cancel', 'end a run that has not ended');
}
