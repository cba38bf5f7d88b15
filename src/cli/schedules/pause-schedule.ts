import type { Command } from 'commander';
import { INSTANT, instantText } from '../common/arguments.ts';
import { type Cli, withExamples } from '../cli.ts';
import type { ScheduleAnswer } from '../server/answers.ts';
import { pathOf } from '../server/server-calls.ts';

export function addPauseSchedule(parent: Command, cli: Cli): void {
  const pause = parent
    .command('pause')
    .description('plan no fires of a schedule, until it is resumed')
    .argument('<id>')
    .option('--reason <text>', 'why, for those who look')
    .option('--until <instant>', `resume it by itself then: ${INSTANT}`)
    .action(async (id: string, { reason, until }: { reason?: string; until?: string }) => {
      const pauseUntil = instantText(until, cli.surroundings);
      await write(cli, id, { enabled: false, pauseReason: reason, pauseUntil });
    });
  withExamples(pause, 'firelock schedule pause invoices --reason "the bank is closed" --until +3d');
  const resume = parent
    .command('resume')
    .description('let a paused schedule fire again')
    .argument('<id>')
    .action((id: string) => write(cli, id, { enabled: true }));
  withExamples(resume, 'firelock schedule resume invoices');
}

async function write(cli: Cli, id: string, body: object): Promise<void> {
  const answer = await cli.server().call('PATCH', pathOf('schedules', id), { body });
  const { status, nextFireAt, pauseUntil } = answer.body() as ScheduleAnswer;
  cli.output().show(answer.text, ({ time }) => {
    const until = pauseUntil === null ? '' : ` until ${time(pauseUntil)}`;
    const next = nextFireAt === null ? '' : `; next fire ${time(nextFireAt)}`;
    return [`schedule ${id} is ${status}${until}${next}`];
  });
}
