import type { Command } from 'commander';
import { type Cli, withExamples } from './cli.ts';
import type { DemoOptions } from './demo/demo.ts';
import { usageError } from './exit-codes.ts';
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
      const options = optionsOf(given);
      const { runDemo } = await import('./demo/demo.ts');
      cli.exitCode = await runDemo(options, surroundings);
    });
  withExamples(command, 'firelock demo', 'firelock demo --seconds 30 --schedules 1000 --kill-every 5');
}

/** @throws CliError that names every fault */
function optionsOf(given: Given): DemoOptions {
  const faults: string[] = [];
  const read = (name: keyof DemoOptions): number => {
    const { flag, standard, least, most } = OPTIONS[name];
    const text = given[name] ?? String(standard);
    const value = /^\d{1,6}$/.test(text) ? Number(text) : NaN;
    if (!(value >= least && value <= most))
      faults.push(`${flag} is ${text}; expected: a whole number from ${least} to ${most}`);
    return value;
  };
  const options = { seconds: read('seconds'), schedules: read('schedules'), killEvery: read('killEvery') };
  if (options.killEvery >= options.seconds) {
    faults.push(`--kill-every ${options.killEvery} kills no instance within --seconds ${options.seconds}`);
  }
  if (faults.length > 0) throw usageError(faults.join('\nfirelock: '));
  return options;
}
