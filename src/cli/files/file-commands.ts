import { resolve } from 'node:path';
import { type Command, Option } from 'commander';
import { isObject } from '../../api/http/json/json-body.ts';
import { type Cli, withExamples } from '../cli.ts';
import { collect, fileBytes } from '../common/arguments.ts';
import { EXIT, usageError } from '../exit-codes.ts';
import { type ExportOptions, exportAll } from './export-command.ts';
import { isManifest, readCronJobs } from './crontab/cron-jobs.ts';
import { readCrontab } from './crontab/crontab-lines.ts';
import { decoded } from './crontab/file-encoding.ts';
import { importText } from './crontab/imported.ts';
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

function addImport(program: Command, cli: Cli): void {
  const command = program
    .command('import-crontab')
    .description(
      'print a file of schedules for a crontab or for CronJobs of Kubernetes; exit code 1: something cannot be carried over',
    )
    .argument('<file>', 'a crontab or manifests; - is standard input')
    .option(
      '--system',
      'its lines name their user, as those of /etc/crontab and of /etc/cron.d do by themselves',
    )
    .option('--encoding <name>', 'of the file, as latin1 (default: utf-8)')
    .option('--set <name>', 'the set of the schedules')
    .option(
      '--queue <name>',
      'the queue that workers pull all commands from, also those that call curl (default: crontab)',
    )
    .option(
      '--target-url <url>',
      'send the commands to this URL instead; templates as {{scheduleId}} work in it',
    )
    .option('--timezone <zone>', 'of times that name none (default: that of this machine)')
    .action(async (path: string, options: ImportCommandOptions) => {
      cli.exitCode = await importCrontab(cli, path, options);
    });
  withExamples(
    command,
    'crontab -l | firelock import-crontab - --set crontab > schedules.yaml',
    'firelock import-crontab /etc/crontab --system --timezone Europe/Berlin',
  );
}

interface ImportCommandOptions {
  system?: true;
  set?: string;
  queue?: string;
  targetUrl?: string;
  timezone?: string;
  encoding?: string;
}

const STANDARD_QUEUE = 'crontab';

/** Prints a file of schedules, and applies nothing. Answers the exit code: 1 if something is not carried over. */
async function importCrontab(cli: Cli, path: string, options: ImportCommandOptions): Promise<number> {
  const { system, set, queue, targetUrl, timezone, encoding } = options;
  if (queue !== undefined && targetUrl !== undefined)
    throw usageError('either --queue or --target-url: a schedule has one target');
  const text = decoded(await fileBytes(path, cli.surroundings), path, encoding);
  const { out, err, zone } = cli.surroundings;
  const isKubernetes = isManifest(text);
  const standardZone = timezone ?? (isKubernetes ? 'UTC' : zone);
  if (standardZone === null)
    throw usageError('--timezone: TZ names no zone, so say which one the times are in');
  const into = {
    target:
      targetUrl === undefined
        ? { type: 'pull', queue: queue ?? STANDARD_QUEUE }
        : { type: 'http', url: targetUrl },
    timezone: standardZone,
  };
  const read = isKubernetes
    ? readCronJobs(text, into)
    : readCrontab(text, {
        ...into,
        isSystem: system === true || isSystemPath(path),
        takesCurl: queue === undefined && targetUrl === undefined,
      });
  const head = [
    `Imported by firelock import-crontab (docs/git.md). Read it, then: firelock plan FILE`,
    `Times without a zone of their own are taken for those of ${into.timezone}: ${
      timezone === undefined ? ORIGIN[isKubernetes ? 'kubernetes' : 'crontab'] : '--timezone'
    }.`,
  ];
  out.write(importText(read, head, set ?? null));
  const worker = workerLine(queue ?? STANDARD_QUEUE, isKubernetes);
  if (read.schedules.some(({ fields }) => isPulled(fields))) err.write(`${worker}\n`);
  for (const { line, message } of read.remarks) err.write(`${path}:${line}: ${message}\n`);
  return read.remarks.some(({ isLost }) => isLost) ? EXIT.failed : EXIT.done;
}

function isPulled({ target }: Record<string, unknown>): boolean {
  return isObject(target) && target['type'] === 'pull';
}

/** What starts the worker for what was imported. */
function workerLine(queue: string, isKubernetes: boolean): string {
  const start = `firelock work ${queue}`;
  return isKubernetes
    ? `then start a worker for the Jobs in the payloads: ${start} --exec PROGRAM`
    : `then start a worker on each machine that may run the commands: ${start}`;
}

/** cron reads these with a user in each line. */
function isSystemPath(path: string): boolean {
  return path !== '-' && /\/etc\/(?:crontab|cron\.d\/[^/]+)$/.test(resolve(path));
}

const ORIGIN = {
  crontab: 'the zone of this machine (or say --timezone)',
  kubernetes: 'the usual zone of a control plane (or say --timezone)',
};
