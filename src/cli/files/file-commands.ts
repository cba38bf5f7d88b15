import { type Command, Option } from 'commander';
import { type Cli, withExamples } from '../cli.ts';
import { collect } from '../common/arguments.ts';
import { type ExportOptions, exportAll } from './export-command.ts';
import { addImport } from './import-command.ts';
import { type FileOptions, planOrApply } from './plan-apply.ts';
import { expressionsOf, mayHash } from '../../core/cron/cron-fields.ts';
import { type ForeignFields, NotSayable } from '../../core/cron/foreign/foreign-fields.ts';
import { type System, SYSTEMS, translated } from '../../core/cron/foreign/foreign-forms.ts';
import { withCountedEnd } from '../../core/time/counted-end.ts';
import { isZone } from '../../core/zones/zone.ts';
import { CliError, EXIT, usageError } from '../exit-codes.ts';
import { checkFields, checkTimes, NotCarriedOver } from './crontab/imported.ts';

const FILE = 'YAML or JSON; - is standard input';

export function addFileCommands(program: Command, cli: Cli): void {
  addPlanAndApply(program, cli);
  addExport(program, cli);
  addImport(program, cli);
  addTranslate(program, cli);
}

function addPlanAndApply(program: Command, cli: Cli): void {
  const plan = withFileOptions(program.command('plan'))
    .description(
      'say what applying a file of schedules, calendars, limits, connections and notifiers would change; exit code 0: nothing, 2: something, 1: an error',
    )
    .action(async (path: string, options: FileOptions) => {
      cli.exitCode = await planOrApply(cli, path, options, false);
    });
  withExamples(plan, 'firelock plan schedules.yaml', 'firelock plan schedules.yaml --prune --set billing');
  const apply = withFileOptions(program.command('apply'))
    .description(
      'make the server have what a file of schedules, calendars, limits, connections and notifiers says; exit code 0: it had, 2: something changed, 1: an error',
    )
    .action(async (path: string, options: FileOptions) => {
      cli.exitCode = await planOrApply(cli, path, options, true);
    });
  withExamples(
    apply,
    'firelock apply schedules.yaml --variable REPORTS_TOKEN',
    'firelock apply schedules.yaml --prune --set billing',
  );
}

function withFileOptions(command: Command): Command {
  return command
    .argument('<file>', FILE)
    .option('--set <name>', 'label all schedules of the file with this set (default: what the file says)')
    .option(
      '--variable <name>',
      'an environment variable that the file may use as ${NAME}; may be given several times',
      collect,
    )
    .option('--prune', 'delete schedules that carry the label of the set and are not in the file any more');
}

function addExport(program: Command, cli: Cli): void {
  const command = program
    .command('export')
    .description('write all schedules, calendars, limits, connections and notifiers as a file for `firelock apply`')
    .option('--set <name>', 'only the schedules of this set')
    .addOption(new Option('--format <format>', 'of the file').choices(['yaml', 'json']).default('yaml'))
    .action(async (options: ExportOptions) => {
      await exportAll(cli, options);
    });
  withExamples(command, 'firelock export > schedules.yaml', 'firelock export --set billing --format json');
}

interface Options {
  from: System;
  timezone?: string;
}

function addTranslate(program: Command, cli: Cli): void {
  const command = program
    .command('translate')
    .description(
      'print the fields of a schedule that say what an expression of another system says; exit code 1: none say it exactly',
    )
    .argument('<expression>', 'as the other system writes it')
    .addOption(new Option('--from <system>', 'whose it is').choices(SYSTEMS).makeOptionMandatory())
    .option('--timezone <zone>', 'in which that system reads times that name none (default: UTC)')
    .action((expression: string, { from, timezone }: Options) => {
      if (timezone !== undefined && !isZone(timezone))
        throw usageError(`--timezone ${timezone} is not the IANA name of a zone`);
      const fields = translation(expression, from, timezone ?? null);
      cli.surroundings.out.write(`${JSON.stringify(fields, null, 2)}\n`);
      for (const note of notesOn(fields)) cli.surroundings.err.write(`${note}\n`);
    });
  withExamples(
    command,
    "firelock translate '0 0 12 ? * 6#3' --from quartz --timezone Europe/Berlin",
    "firelock translate 'Mon..Fri 9:00' --from systemd",
  );
}

/** @throws CliError with the reason why there is none */
function translation(expression: string, from: System, timezone: string | null): ForeignFields {
  try {
    const fields = withCountedEnd(translated(expression, from, timezone));
    checkFields({ id: 'x', ...fields, target: { type: 'pull', queue: 'q' } });
    for (const cron of expressionsOf(fields.cron ?? [])) checkTimes(cron, fields.timezone ?? 'UTC');
    return fields;
  } catch (error) {
    if (error instanceof NotSayable || error instanceof NotCarriedOver)
      throw new CliError(EXIT.failed, `no fields say exactly this: ${error.message}`);
    throw error;
  }
}

function notesOn({ cron, everySeconds, timezone, startAt }: ForeignFields): string[] {
  return [
    ...(cron !== undefined && timezone === undefined
      ? ['its times are those of UTC, unless --timezone says otherwise']
      : []),
    ...(cron !== undefined && mayHash(cron)
      ? ['H is picked by firelock, from the schedule’s id: other times than before']
      : []),
    ...(everySeconds !== undefined && startAt === undefined
      ? ['counted from the creation of the schedule, unless startAt says from when']
      : []),
  ];
}
