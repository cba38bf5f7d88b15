import type { Cli } from '../../cli.ts';
import { EXIT, usageError } from '../../exit-codes.ts';
import { textOf } from '../plan-apply.ts';
import { isManifest, readCronJobs } from './cron-jobs.ts';
import { readCrontab } from './crontab-lines.ts';
import { importText } from './imported.ts';

export interface ImportCommandOptions {
  system?: true;
  set?: string;
  queue?: string;
  targetUrl?: string;
  timezone?: string;
}

const STANDARD_QUEUE = 'crontab';

/** Prints a file of schedules, and applies nothing. Answers the exit code: 1 if something is not carried over. */
export async function importCrontab(cli: Cli, path: string, options: ImportCommandOptions): Promise<number> {
  const { system, set, queue, targetUrl, timezone } = options;
  if (queue !== undefined && targetUrl !== undefined)
    throw usageError('either --queue or --target-url: a schedule has one target');
  const text = await textOf(cli, path);
  const { out, err, zone } = cli.surroundings;
  const isKubernetes = isManifest(text);
  const into = {
    target:
      targetUrl === undefined
        ? { type: 'pull', queue: queue ?? STANDARD_QUEUE }
        : { type: 'http', url: targetUrl },
    timezone: timezone ?? (isKubernetes ? 'UTC' : zone),
  };
  const read = isKubernetes
    ? readCronJobs(text, into)
    : readCrontab(text, { ...into, isSystem: system === true });
  const head = [
    `Imported by firelock import-crontab (docs/crontab.md). Read it, then: firelock plan FILE`,
    `Times without a zone of their own are taken for those of ${into.timezone}: ${
      timezone === undefined ? ORIGIN[isKubernetes ? 'kubernetes' : 'crontab'] : '--timezone'
    }.`,
  ];
  out.write(importText(read, head, set ?? null));
  for (const { line, message } of read.remarks) err.write(`${path}:${line}: ${message}\n`);
  return read.remarks.some(({ isLost }) => isLost) ? EXIT.failed : EXIT.done;
}

const ORIGIN = {
  crontab: 'the zone of this machine (or say --timezone)',
  kubernetes: 'the usual zone of a control plane (or say --timezone)',
};
