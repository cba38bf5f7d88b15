import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import type { Command } from 'commander';
import { QUEUE_NAME } from '../../core/runs/run-lane.ts';
import { collect, numbersIn } from '../common/arguments.ts';
import { type Cli, withExamples } from '../cli.ts';
import { usageError } from '../exit-codes.ts';
import { type Choice, execWords } from './job-command.ts';
import type { WorkOptions } from './worker.ts';

interface Given extends Partial<Record<keyof typeof NUMBERS, string>> {
  exec?: string;
  shell?: true;
  allowRequestPayloads?: true;
  name?: string;
  retryExit?: string[];
}

const NUMBERS = {
  concurrency: { flag: '--concurrency', standard: 10, least: 1, most: 1000 },
  lease: { flag: '--lease', standard: 120, least: 5, most: 86_400 },
  timeout: { flag: '--timeout', standard: null, least: 1, most: 1_000_000 },
  grace: { flag: '--grace', standard: 10, least: 0, most: 3600 },
} as const;

export function addWorkCommand(program: Command, cli: Cli): void {
  const command = program
    .command('work')
    .description(
      'run a command for each run of pull queues: those of an imported crontab, or --exec; until SIGTERM or Ctrl-C',
    )
    .argument('<queue...>', 'the queues to claim runs from')
    .option(
      '--exec <command>',
      'what to run, with the payload as its input; its words are split, and nothing is expanded',
    )
    .option('--shell', 'give the text of --exec to sh -c')
    .option('--allow-request-payloads', 'also run commands that came with a call, and not from a schedule')
    .option('--concurrency <n>', 'how many commands at the same time (default: 10)')
    .option('--lease <seconds>', 'how long the worker may be silent before another one does its runs (default: 120)')
    .option('--timeout <seconds>', 'how long a command may take (default: no limit)')
    .option('--grace <seconds>', 'between TERM and KILL of what is ended (default: 10)')
    .option('--retry-exit <code>', 'which means later, as 75 does; may be given several times', collect)
    .option('--name <name>', 'of the worker (default: one of its own, each time)')
    .action((queues: string[], given: Given) => run(cli, workOptions(queues, given)));
  withExamples(
    command,
    'firelock work crontab',
    "firelock work reports --exec 'python3 report.py --full' --concurrency 2 --timeout 3600",
    `firelock work mail --shell --exec 'mail -s "$NAME" ops'`,
  );
}

/** Until Ctrl-C or SIGTERM. */
async function run({ surroundings }: Cli, options: WorkOptions): Promise<void> {
  const { work } = await import('./worker.ts');
  const terminated = new AbortController();
  const terminate = () => terminated.abort();
  process.once('SIGTERM', terminate);
  try {
    await work(options, surroundings, AbortSignal.any([surroundings.signal, terminated.signal]));
  } finally {
    process.off('SIGTERM', terminate);
  }
}

/** @throws CliError that names every fault */
export function workOptions(queues: readonly string[], given: Given): WorkOptions {
  const faults: string[] = [];
  const { name = `${hostname().slice(0, 200)}-${randomBytes(6).toString('hex')}`, retryExit = [] } = given;
  if (!NAME.test(name)) faults.push(`--name is ${name}; expected: up to 255 letters, digits and signs`);
  for (const queue of queues)
    if (!QUEUE_NAME.test(queue))
      faults.push(`${queue} is not a queue: up to 128 letters, digits, dots, dashes and underscores`);
  if (new Set(queues).size < queues.length) faults.push('a queue is named twice');
  const odd = retryExit.find((code) => !/^\d{1,3}$/.test(code) || Number(code) < 1 || Number(code) > 255);
  if (odd !== undefined) faults.push(`--retry-exit is ${odd}; expected: an exit code from 1 to 255`);
  const choice = choiceOf(given, faults);
  const { concurrency, lease, timeout, grace } = numbersIn(given, NUMBERS, faults);
  const options = {
    ...{ queues, name, choice, retryExits: retryExit.map(Number) },
    ...{ concurrency, leaseSeconds: lease, timeoutSeconds: timeout, graceSeconds: grace },
  };
  if (faults.length > 0) throw usageError(faults.join('\nfirelock: '));
  return options;
}

const NAME = /^[\x21-\x7e]{1,255}$/;

function choiceOf({ exec, shell, allowRequestPayloads }: Given, faults: string[]): Choice {
  if (exec === undefined) {
    if (shell) faults.push('--shell says how --exec is run: there is no --exec');
    return { kind: 'payload', any: allowRequestPayloads === true };
  }
  if (allowRequestPayloads)
    faults.push('--allow-request-payloads is about commands in payloads: with --exec none is run');
  if (shell) return { kind: 'shell', text: exec };
  const words = execWords(exec);
  if (words === null) faults.push(`--exec is ${exec}: a quote is not closed, or it ends with a backslash`);
  else if (words.length === 0) faults.push('--exec names no command');
  return { kind: 'words', words: words ?? [] };
}
