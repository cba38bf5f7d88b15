import { setTimeout as delay } from 'node:timers/promises';
import type { Command } from 'commander';
import { type Cli, withExamples } from '../cli.ts';
import { usageError } from '../exit-codes.ts';
import type { RunAnswer } from '../server/answers.ts';
import { wholeNumber } from '../server/list-pages.ts';
import type { Output } from '../terminal/output.ts';
import { printable } from '../terminal/shown-text.ts';
import { paintStatus } from '../terminal/paint.ts';
import { createFollower } from './follow-runs.ts';
import { type RunFilterOptions, filterOf, filterOptions } from './run-filter.ts';
import { runText } from './run-text.ts';
import { patient } from './while-away.ts';

interface Options extends RunFilterOptions {
  last: number;
  count?: number;
  interval: string;
}

export function addTailRuns(parent: Command, cli: Cli): void {
  const command = filterOptions(
    parent
      .command('tail')
      .description(
        'follow runs: a line when one comes due, and one whenever its status changes, until Ctrl-C',
      ),
  )
    .option('--last <n>', 'begin with so many of the last five minutes', wholeNumber, 10)
    .option('--count <n>', 'end after so many lines', wholeNumber)
    .option('--interval <seconds>', 'how often to ask', '2')
    .action((options: Options) => tail(cli, options));
  withExamples(
    command,
    'firelock run tail --label team:billing',
    'firelock run tail --status failed,unknown --json | while read -r run; do echo "$run"; done',
  );
}

async function tail(cli: Cli, { last, count = Infinity, interval, ...filter }: Options): Promise<void> {
  const { signal } = cli.surroundings;
  const intervalMs = Number(interval) * 1000;
  if (!(intervalMs > 0 && intervalMs <= MAX_MS)) throw usageError('--interval must be 0.01 to 3600 seconds');
  const output = cli.output();
  const follower = createFollower(cli.server(), filterOf(filter));
  let printed = 0;
  const print = (runs: readonly RunAnswer[]) => {
    const shown = runs.slice(0, count - printed);
    for (const run of shown) printRun(run, output);
    printed += shown.length;
  };
  try {
    print((await follower.begin()).slice(-last));
    const ask = patient(() => follower.news(), output);
    while (printed < count) {
      await delay(intervalMs, undefined, { signal });
      print((await ask()) ?? []);
    }
  } catch (error) {
    // A user ends the command by Ctrl-C.
    if (!signal.aborted) throw error;
  }
}

const MAX_MS = 3_600_000;

function printRun(run: RunAnswer, output: Output): void {
  output.line(run, (view) => {
    const { status, scheduleId, scheduledFor, id } = run;
    return [
      view.time(scheduledFor),
      [paintStatus(status, view.paint), ' '.repeat(Math.max(0, STATUS_WIDTH - status.length))].join(''),
      scheduleId ?? 'one-off run',
      printable(
        runText(run, view)
          .slice(status.length)
          .replace(/^[, ]+/, ''),
      ),
      id,
    ]
      .filter((part) => part !== '')
      .join('  ');
  });
}

const STATUS_WIDTH = 'succeeded'.length;
