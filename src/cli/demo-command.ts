import { fork } from 'node:child_process';
import { once } from 'node:events';
import { extname, join } from 'node:path';
import type { Command } from 'commander';
import { type Cli, withExamples } from './cli.ts';
import { numbersIn } from './common/arguments.ts';
import type { DemoOptions } from './demo/demo-story.ts';
import { CliError, EXIT, failure, usageError } from './exit-codes.ts';
import type { Surroundings } from './surroundings.ts';

type Given = Partial<Record<keyof DemoOptions, string>>;

const OPTIONS = {
  seconds: { flag: '--seconds', standard: 90, least: 10, most: 3600 },
  schedules: { flag: '--schedules', standard: 300, least: 10, most: 2000 },
  killEvery: { flag: '--kill-every', standard: 8, least: 3, most: 600 },
} as const;

export function addDemoCommand(program: Command, cli: Cli, surroundings: Surroundings): void {
  const text = (name: keyof DemoOptions, what: string) => {
    const { least, most, standard } = OPTIONS[name];
    return `${what}, from ${least} to ${most} (default: ${standard})`;
  };
  const command = program
    .command('demo')
    .description(
      'fire hundreds of schedules on three instances, kill them with -9, and check that no fire is lost; it brings its own PostgreSQL',
    )
    .option('--seconds <n>', text('seconds', 'for how long schedules fire'))
    .option('--schedules <n>', text('schedules', 'how many'))
    .option('--kill-every <n>', text('killEvery', 'seconds between two kills'))
    .action(async (given: Given) => {
      cli.exitCode = await runDemo(optionsOf(given), surroundings);
    });
  withExamples(command, 'firelock demo', 'firelock demo --seconds 30 --schedules 1000 --kill-every 5');
}

/** @throws CliError that names every fault */
function optionsOf(given: Given): DemoOptions {
  const faults: string[] = [];
  const options = numbersIn(given, OPTIONS, faults);
  if (options.killEvery >= options.seconds)
    faults.push(`--kill-every ${options.killEvery} kills no instance within --seconds ${options.seconds}`);
  if (faults.length > 0) throw usageError(faults.join('\nfirelock: '));
  return options;
}

/** What programs and Node itself need. Nothing of the caller's own configuration of firelock reaches the demo's instances. */
const KEPT = [
  ...['PATH', 'HOME', 'TMPDIR', 'TEMP', 'TMP', 'SystemRoot', 'LD_LIBRARY_PATH'],
  ...['NODE_OPTIONS', 'NODE_COMPILE_CACHE'],
  // As root, PostgreSQL runs as the user who called sudo.
  ...['SUDO_UID', 'SUDO_GID'],
];

/**
 * `firelock demo`; answers the exit code. All of it belongs to a process of its own (`demo-process.ts`), which removes everything once this
 * one is gone, however that came about: the channel to it closes then.
 */
async function runDemo(options: DemoOptions, { signal, env }: Surroundings): Promise<number> {
  const file = join(import.meta.dirname, 'demo', `demo-process${extname(import.meta.filename)}`);
  const child = fork(file, [JSON.stringify(options)], {
    // A session of its own: whatever a terminal sends ends this process, and the other one cleans up.
    detached: true,
    // Not this process's: an --env-file among them would be the caller's configuration.
    execArgv: [],
    env: Object.fromEntries(Object.entries(env).filter(([name]) => KEPT.includes(name))),
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const exited = once(child, 'exit');
  const leave = () => {
    if (child.connected) child.disconnect();
  };
  signal.addEventListener('abort', leave);
  if (signal.aborted) leave();
  const [code] = (await exited) as [number | null];
  if (code === null) {
    killGroup(child.pid);
    throw failure('the process that keeps PostgreSQL and the instances was killed');
  }
  if (code !== EXIT.done && signal.aborted)
    throw new CliError(EXIT.interrupted, 'interrupted; the demo has removed everything that it started');
  return code;
}

/** It left its instances behind. */
function killGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL');
  } catch {
    // There are none any more.
  }
}
