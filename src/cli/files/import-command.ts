import { resolve } from 'node:path';
import type { Command } from 'commander';
import { isObject } from '../../api/http/json/json-body.ts';
import { type Cli, withExamples } from '../cli.ts';
import { decoded, fileBytes } from '../common/arguments.ts';
import { EXIT, usageError } from '../exit-codes.ts';
import { isManifest, readCronJobs } from './crontab/cron-jobs.ts';
import { readCrontab } from './crontab/crontab-lines.ts';
import { type Import, importText } from './crontab/imported.ts';
import { reportable, watched } from './crontab/watched-schedules.ts';
import { checkCrontabOut, writeReporting } from './crontab-out.ts';

export function addImport(program: Command, cli: Cli): void {
  const command = program
    .command('import-crontab')
    .description(
      'print a file of schedules for a crontab or for CronJobs of Kubernetes; exit code 1: something cannot be carried over',
    )
    .argument('<file>', 'a crontab or manifests; - is standard input')
    .option('--system', 'its lines name their user, as those of /etc/crontab and of /etc/cron.d do by themselves')
    .option('--encoding <name>', 'of the file, as latin1 (default: utf-8)')
    .option('--set <name>', 'the set of the schedules')
    .option(
      '--queue <name>',
      'the queue that workers pull all commands from, also those that call curl (default: crontab)',
    )
    .option('--target-url <url>', 'send the commands to this URL instead; templates as {{scheduleId}} work in it')
    .option('--timezone <zone>', 'of times that name none (default: that of this machine)')
    .option('--observe', 'the schedules only watch what goes on elsewhere: they record, and send nothing')
    .option(
      '--crontab-out <file>',
      'with --observe: apply the schedules at FIRELOCK_URL, and write this new file: the crontab, whose lines report there',
    )
    .action(async (path: string, options: ImportCommandOptions) => {
      cli.exitCode = await importCrontab(cli, path, options);
    });
  withExamples(
    command,
    'crontab -l | firelock import-crontab - --set crontab > schedules.yaml',
    'firelock import-crontab /etc/crontab --system --timezone Europe/Berlin',
    'crontab -l | firelock import-crontab - --observe --crontab-out crontab.new > schedules.yaml',
  );
}

interface ImportCommandOptions {
  system?: true;
  set?: string;
  queue?: string;
  targetUrl?: string;
  timezone?: string;
  encoding?: string;
  observe?: true;
  crontabOut?: string;
}

const STANDARD_QUEUE = 'crontab';

/** Prints a file of schedules. Answers the exit code: 1 if something is not carried over. */
async function importCrontab(cli: Cli, path: string, options: ImportCommandOptions): Promise<number> {
  const { queue, targetUrl, observe, crontabOut } = options;
  if (queue !== undefined && targetUrl !== undefined)
    throw usageError('either --queue or --target-url: a schedule has one target');
  if (crontabOut !== undefined) await checkCrontabOut(cli, crontabOut, { observe });
  const bytes = await fileBytes(path, cli.surroundings);
  const { read, head, isKubernetes } = readFile(cli, path, bytes, options);
  if (crontabOut !== undefined && isKubernetes)
    throw usageError(`--crontab-out: ${path} has manifests, and is no crontab`);
  const seen = observe ? watched(read) : read;
  const told = crontabOut === undefined ? seen : reportable(seen, bytes, cli.server().url);
  const text = importText(told, head, options.set ?? null);
  const { out, err } = cli.surroundings;
  out.write(text);
  const worker = workerLine(queue ?? STANDARD_QUEUE, isKubernetes);
  if (told.schedules.some(({ fields }) => isPulled(fields))) err.write(`${observe ? LATER : 'then '}${worker}\n`);
  const remarks = told.remarks.toSorted((a, b) => a.line - b.line);
  for (const { line, message } of remarks) err.write(`${path}:${line}: ${message}\n`);
  if (crontabOut !== undefined) await writeReporting(cli, crontabOut, { path, bytes, text, read: told });
  return told.remarks.some(({ isLost }) => isLost) ? EXIT.failed : EXIT.done;
}

function readFile(
  { surroundings: { zone } }: Cli,
  path: string,
  bytes: Buffer,
  { system, queue, targetUrl, timezone, encoding, observe }: ImportCommandOptions,
): { read: Import; head: string[]; isKubernetes: boolean } {
  const text = decoded(bytes, path, encoding);
  const isKubernetes = isManifest(text);
  const standardZone = timezone ?? (isKubernetes ? 'UTC' : zone);
  if (standardZone === null) throw usageError('--timezone: TZ names no zone, so say which one the times are in');
  const into = {
    target:
      targetUrl === undefined ? { type: 'pull', queue: queue ?? STANDARD_QUEUE } : { type: 'http', url: targetUrl },
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
    ...(observe ? [WATCHES] : []),
  ];
  return { read, head, isKubernetes };
}

const WATCHES = 'They send nothing before the moment in observe.until; null: never (docs/moving-here.md).';
const LATER = 'before observe.until, ';

function isPulled({ target }: Record<string, unknown>): boolean {
  return isObject(target) && target['type'] === 'pull';
}

/** What starts the worker for what was imported. */
function workerLine(queue: string, isKubernetes: boolean): string {
  const start = `firelock work ${queue}`;
  return isKubernetes
    ? `start a worker for the Jobs in the payloads: ${start} --exec PROGRAM`
    : `start a worker on each machine that may run the commands: ${start}`;
}

/** cron reads these with a user in each line. */
function isSystemPath(path: string): boolean {
  return path !== '-' && /\/etc\/(?:crontab|cron\.d\/[^/]+)$/.test(resolve(path));
}

const ORIGIN = {
  crontab: 'the zone of this machine (or say --timezone)',
  kubernetes: 'the usual zone of a control plane (or say --timezone)',
};
