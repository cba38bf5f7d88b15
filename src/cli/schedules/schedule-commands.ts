import type { Command } from 'commander';
import { type Cli, group, withExamples } from '../cli.ts';
import { type BulkOptions, addDelete, actOnMatching, bulkOptions } from '../common/confirmed-actions.ts';
import { addSetSchedule } from './set-schedule.ts';
import { addGetSchedule, addListSchedules, addObservedSchedule } from './show-schedules.ts';
import { addSkipFire, addUpcomingFires } from './upcoming-fires.ts';
import { addWhySchedule } from './why-schedule.ts';
import {
  type PayloadOptions,
  type Period,
  INSTANT,
  collect,
  instantText,
  numberOrText,
  givenPayload,
  periodOf,
} from '../common/arguments.ts';
import type { ScheduleAnswer, BackfillAnswer, RunAnswer } from '../server/answers.ts';
import { pathOf } from '../server/server-calls.ts';

export function addScheduleCommands(program: Command, cli: Cli): void {
  const schedule = group(program, 'schedule', 'schedules: when to fire, and what to call');
  addListSchedules(schedule, cli);
  addGetSchedule(schedule, cli);
  addSetSchedule(schedule, cli);
  addPauseSchedule(schedule, cli);
  addFireSchedule(schedule, cli);
  addUpcomingFires(schedule, cli);
  addWhySchedule(schedule, cli);
  addObservedSchedule(schedule, cli);
  addSkipFire(schedule, cli);
  addBackfillSchedule(schedule, cli);
  addBulkSchedules(schedule, cli);
  const what = { noun: 'schedule', collection: 'schedules', warning: 'its open runs are abandoned' };
  withExamples(addDelete(schedule, cli, what), 'firelock schedule delete invoices --yes');
}

interface PauseOptions {
  reason?: string;
  until?: string;
}

function addPauseSchedule(parent: Command, cli: Cli): void {
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

function addBulkSchedules(parent: Command, cli: Cli): void {
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

interface FireOptions extends PayloadOptions {
  key?: string;
}

function addFireSchedule(parent: Command, cli: Cli): void {
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

function addBackfillSchedule(parent: Command, cli: Cli): void {
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
