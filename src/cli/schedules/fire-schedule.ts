import type { Command } from 'commander';
import { type PayloadOptions, payloadOf } from '../common/arguments.ts';
import { type Cli, withExamples } from '../cli.ts';
import type { RunAnswer } from '../server/answers.ts';
import { pathOf } from '../server/server-calls.ts';

interface Options extends PayloadOptions {
  key?: string;
}

export function addFireSchedule(parent: Command, cli: Cli): void {
  const command = parent
    .command('fire')
    .description('fire a schedule now, also a paused one')
    .argument('<id>')
    .option('--payload <json>', 'in place of its payload, byte for byte')
    .option('--payload-file <file>', 'the same, from a file (-: standard input)')
    .option('--key <key>', 'an idempotency key: the same key again answers the same run')
    .action(async (id: string, { key, ...options }: Options) => {
      const payload = await payloadOf(options, cli.surroundings);
      const answer = await cli.server().call('POST', pathOf('schedules', id, 'fire'), {
        ...(payload && { body: { payload } }),
        ...(key !== undefined && { headers: { 'idempotency-key': key } }),
      });
      const run = answer.body() as RunAnswer;
      cli.output().show(answer.text, () => [`run ${run.id} is ${run.status}; firelock run get ${run.id}`]);
    });
  withExamples(
    command,
    'firelock schedule fire invoices',
    `firelock schedule fire invoices --payload '{"month": "2030-01"}' --key invoices-2030-01`,
  );
}
