import type { Command } from 'commander';
import type { Cli } from './cli.ts';
import { DEMO_OPTIONS, type DemoOptions, readDemoOptions } from './demo/demo-options.ts';
import type { Surroundings } from './surroundings.ts';
import { withExamples } from './tree.ts';

export function addDemoCommand(program: Command, cli: Cli, surroundings: Surroundings): void {
  const text = (name: keyof DemoOptions, what: string) => {
    const { least, most, standard } = DEMO_OPTIONS[name];
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
    .action(async (given: Partial<Record<keyof DemoOptions, string>>) => {
      const options = readDemoOptions(given);
      const { runDemo } = await import('./demo/demo.ts');
      cli.exitCode = await runDemo(options, surroundings);
    });
  withExamples(command, 'firelock demo', 'firelock demo --seconds 30 --schedules 1000 --kill-every 5');
}
