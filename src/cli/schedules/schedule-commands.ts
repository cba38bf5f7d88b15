import type { Command } from 'commander';
import { type Cli, group, withExamples } from '../cli.ts';
import { type BulkOptions, type Found, actOnMatching, addDelete, bulkOptions, writeOver } from '../common/changes.ts';
import {
  type ScheduleFilterOptions,
  addGetSchedule,
  addListSchedules,
  addObservedSchedule,
  scheduleFilter,
} from './show-schedules.ts';
import { addSkipFire, addUpcomingFires } from './upcoming-fires.ts';
import { addWhySchedule } from './why-schedule.ts';
import {
  type PayloadOptions,
  type Period,
  givenPayload,
  INSTANT,
  instantText,
  jsonIn,
  numberOrText,
  periodOf,
} from '../common/arguments.ts';
import type { BackfillAnswer, RunAnswer, ScheduleAnswer } from '../server/answers.ts';
import { type Answer, pathOf } from '../server/server-calls.ts';
import { isTree, mergePatch, type RawJson } from '../../api/http/json/raw-json.ts';
import { usageError } from '../exit-codes.ts';
import { type DefinitionOptions, type Tree, definitionOf, definitionOptions } from './definition-options.ts';

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
  const remove = addDelete(schedule, cli, 'schedule', 'its open runs are abandoned');
  withExamples(remove, 'firelock schedule delete invoices --yes');
}

interface PauseOptions {
  reason?: string;
  until?: string;
}

function addPauseSchedule(parent: Command, cli: Cli): void {
  const pause = parent
    .command('pause <id>')
    .description('plan no fires of a schedule, until it is resumed')
    .option('--reason <text>', 'the reason, which is shown with it')
    .option('--until <instant>', `resume it by itself then: ${INSTANT}`)
    .action((id: string, { reason: pauseReason, until }: PauseOptions) =>
      write(cli, id, { enabled: false, pauseReason, pauseUntil: instantText(until, cli.surroundings) }),
    );
  withExamples(pause, 'firelock schedule pause invoices --reason "the bank is closed" --until +3d');
  const resume = parent
    .command('resume <id>')
    .description('let a paused schedule fire again')
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

type BulkPauseOptions = BulkOptions & PauseOptions & ScheduleFilterOptions;

function addBulkSchedules(parent: Command, cli: Cli): void {
  const bulk = group(parent, 'bulk', 'pause or resume all schedules that match');
  const add = (action: 'pause' | 'resume', verb: string) =>
    bulkOptions(scheduleFilter(bulk.command(action).description(`${action} all schedules that match`))).action(
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

interface FireOptions extends PayloadOptions {
  key?: string;
}

function addFireSchedule(parent: Command, cli: Cli): void {
  const command = parent
    .command('fire <id>')
    .description('fire a schedule now, also a paused one')
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
      await cli.show(asked, ({ id, status }: RunAnswer) => [`run ${id} is ${status}; firelock run get ${id}`]);
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
    .command('backfill <id>')
    .description('make the fires of a past period that have no run, or whose run was skipped or abandoned')
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

interface Options extends DefinitionOptions {
  file?: string;
}

function addSetSchedule(parent: Command, cli: Cli): void {
  const command = parent
    .command('set <id>')
    .description('create a schedule, or change what the options name and leave all else as it is')
    .option('--file <file>', 'its whole definition as JSON, in place of all other options (-: standard input)')
    .action(async (id: string, { file, ...options }: Options) => {
      const change = file === undefined ? await namedChange(options, cli) : await wholeChange(file, options, cli);
      await writeOver(
        cli,
        { noun: 'schedule', id },
        change,
        ({ nextFireAt, status }, { time }) => `; ${nextFireAt === null ? status : `next fire ${time(nextFireAt)}`}`,
      );
    });
  withExamples(
    definitionOptions(command),
    'firelock schedule set invoices --cron "0 2 * * *" --timezone Europe/Berlin --url http://127.0.0.1:9000/run',
    'firelock schedule set invoices --label team:billing --set retry.maxAttempts=3 --unset timezone',
    'firelock schedule get invoices > invoices.json; firelock schedule set invoices --file invoices.json',
  );
}

type Write = (found: Found<ScheduleAnswer>) => Promise<Answer>;

async function namedChange(options: DefinitionOptions, { surroundings }: Cli): Promise<Write> {
  const { patch, payload } = await definitionOf(options, surroundings);
  if (payload === undefined && Object.keys(patch).length === 0)
    throw usageError('nothing to set; --help lists the options');
  const withPayload = (fields: Tree) => ({ ...fields, ...(payload && { payload }) });
  return ({ server, path, before, headers }) => {
    // A merge patch would merge the payload too, and forget its nulls.
    if (before !== null && !payload?.text.startsWith('{'))
      return server.call('PATCH', path, { body: withPayload(patch), headers });
    const base = before === null ? {} : withoutOldTrigger(before, patch);
    return server.call('PUT', path, { body: withPayload(mergePatch(base, patch) as Tree), headers });
  };
}

async function wholeChange(file: string, others: DefinitionOptions, { surroundings }: Cli): Promise<Write> {
  if (Object.keys(others).length > 0)
    throw usageError('--file holds the whole definition: leave out all other options');
  const body: RawJson = await jsonIn(file, surroundings);
  return ({ server, path, headers }) => server.call('PUT', path, { body, headers });
}

const TRIGGERS = ['cron', 'everySeconds', 'at', 'after'];

/** A new kind of timing replaces the old one, as in a PATCH. */
function withoutOldTrigger(definition: unknown, patch: Tree): Tree {
  const base = isTree(definition) ? definition : {};
  if (!TRIGGERS.some((name) => (patch[name] ?? null) !== null)) return base;
  return Object.fromEntries(Object.entries(base).filter(([name]) => !TRIGGERS.includes(name)));
}
