import type { Command } from 'commander';
import { type Cli, withExamples } from '../cli.ts';
import {
  INSTANT,
  type PayloadOptions,
  type Period,
  numberOrText,
  givenPayload,
  periodOf,
} from '../common/arguments.ts';
import type { BackfillAnswer, RunAnswer } from '../server/answers.ts';
import { pathOf } from '../server/server-calls.ts';

interface FireOptions extends PayloadOptions {
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
    .action(async (schedule: string, { key, ...options }: FireOptions) => {
      const payload = await givenPayload(options, cli.surroundings);
      const request = {
        ...(payload && { body: { payload } }),
        ...(key !== undefined && { headers: { 'idempotency-key': key } }),
      };
      const asked = cli.server().call('POST', pathOf('schedules', schedule, 'fire'), request);
      await cli.show(asked, ({ id, status }: RunAnswer) => [
        `run ${id} is ${status}; firelock run get ${id}`,
      ]);
    });
  withExamples(
    command,
    'firelock schedule fire invoices',
    `firelock schedule fire invoices --payload '{"month": "2030-01"}' --key invoices-2030-01`,
  );
}

interface BackfillOptions extends Period {
  limit?: string;
  as?: string;
}

export function addBackfillSchedule(parent: Command, cli: Cli): void {
  const command = parent
    .command('backfill')
    .description('make the fires of a past period that have no run, or whose run was skipped or abandoned')
    .argument('<id>')
    .requiredOption('--from <instant>', `inclusive: ${INSTANT}`)
    .requiredOption('--to <instant>', 'exclusive, and not later than now')
    .option('--limit <n>', 'at most so many (default: 1000)')
    .option('--as <now|then>', 'by its definition as it is now, or as it was then (default: now)')
    .action((id: string, { limit, as, ...period }: BackfillOptions) => {
      const body = { ...periodOf(period, cli.surroundings), limit: numberOrText(limit), as };
      const asked = cli.server().call('POST', pathOf('schedules', id, 'backfill'), { body });
      return cli.show(asked, ({ created, existing, remainingFrom }: BackfillAnswer, { time }) => [
        `${created} runs will be handed off; ${existing} fires already had a run`,
        ...(remainingFrom === null
          ? []
          : [`there are more: continue with --from ${remainingFrom} (${time(remainingFrom)})`]),
      ]);
    });
  withExamples(
    command,
    'firelock schedule backfill invoices --from -8d --to -1d',
    'firelock schedule backfill invoices --from -8d --to -1d --as then',
  );
}
