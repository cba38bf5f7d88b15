import { type Command, Option } from 'commander';
import { type Cli, withExamples } from '../cli.ts';
import { collect } from '../common/arguments.ts';
import { type ExportOptions, exportAll } from './export-command.ts';
import { addImport } from './import-command.ts';
import { type FileOptions, planOrApply } from './plan-apply.ts';
import { addTranslate } from './translate-command.ts';

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
    .description(
      'write all schedules, calendars, limits, connections and notifiers as a file for `firelock apply`',
    )
    .option('--set <name>', 'only the schedules of this set')
    .addOption(new Option('--format <format>', 'of the file').choices(['yaml', 'json']).default('yaml'))
    .action(async (options: ExportOptions) => {
      await exportAll(cli, options);
    });
  withExamples(command, 'firelock export > schedules.yaml', 'firelock export --set billing --format json');
}
