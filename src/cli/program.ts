import { Command, CommanderError } from 'commander';
import { reasonOf } from '../runtime/reason.ts';
import { type Cli, createCli } from './cli.ts';
import { addCompletion } from './completion.ts';
import { CliError, EXIT } from './exit-codes.ts';
import { addDaemonCommands } from './daemon-commands.ts';
import { addDemoCommand } from './demo-command.ts';
import { addFileCommands } from './files/file-commands.ts';
import {
  addAlertCommands,
  addAudit,
  addInstanceCommands,
  addMe,
  addQueueCommands,
  addStats,
  addVerify,
} from './reports.ts';
import { addPreview } from './schedules/upcoming-fires.ts';
import { addRunCommands } from './runs/run-commands.ts';
import { addScheduleCommands } from './schedules/schedule-commands.ts';
import { addCalendarCommands } from './settings/calendar-commands.ts';
import { addMaintenanceCommands, addTakeOver } from './settings/installation-commands.ts';
import { addConnectionCommands, addLimitCommands, addNotifierCommands } from './settings/named-things.ts';
import { addWorkCommand } from './work/work-command.ts';
import type { Surroundings } from './surroundings.ts';
import { showingOnly } from './terminal/shown-text.ts';

/** Runs the command that these arguments name; answers the exit code of the process. Never throws. */
export async function runCommand(args: readonly string[], around: Surroundings): Promise<number> {
  const surroundings = showingOnly(around);
  const { program, cli } = createProgram(surroundings, around);
  try {
    await program.parseAsync(args, { from: 'user' });
    return cli.exitCode;
  } catch (error) {
    // Commander has already reported what it did not understand.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.usage;
    const { signal, err } = surroundings;
    if (error instanceof CliError) {
      err.write(`firelock: ${error.message}\n`);
      return error.exitCode;
    }
    err.write(signal.aborted ? 'firelock: interrupted\n' : `firelock: ${reasonOf(error)}\n`);
    return signal.aborted ? EXIT.interrupted : EXIT.failed;
  }
}

/** The whole tree of commands; its help, the reference of commands and the completion are made from it. */
export function createProgram(
  surroundings: Surroundings,
  ofDemo: Surroundings = surroundings,
): { program: Command; cli: Cli } {
  const program = rootCommand(surroundings);
  const cli = createCli(surroundings, program);
  addDaemonCommands(program, cli);
  // It draws on the terminal, and knows no server but its own.
  addDemoCommand(program, cli, ofDemo);
  addScheduleCommands(program, cli);
  addRunCommands(program, cli);
  addWorkCommand(program, cli);
  addPreview(program, cli);
  addCalendarCommands(program, cli);
  addLimitCommands(program, cli);
  addConnectionCommands(program, cli);
  addNotifierCommands(program, cli);
  addMaintenanceCommands(program, cli);
  addTakeOver(program, cli);
  addQueueCommands(program, cli);
  addAlertCommands(program, cli);
  addInstanceCommands(program, cli);
  addStats(program, cli);
  addAudit(program, cli);
  addMe(program, cli);
  addFileCommands(program, cli);
  addVerify(program, cli);
  addCompletion(program, cli);
  return { program, cli };
}

function rootCommand({ out, err, version }: Surroundings): Command {
  return new Command('firelock')
    .description('A cron daemon that never loses a fire: starts it, and talks to it.')
    .version(`firelock ${version}`, '--version', 'show the version')
    .helpOption('-h, --help', 'show help for a command')
    .helpCommand('help [command]', 'show help for a command')
    .option('--json', 'print JSON, which is the default when not on a terminal')
    .option('--no-json', 'print text for people, also when not on a terminal')
    .option('--wide', 'print all columns, and cut none off')
    .configureHelp({ showGlobalOptions: true, helpWidth: Math.min(out.columns ?? 100, 120) })
    .configureOutput({
      writeOut: (text) => out.write(text),
      writeErr: (text) => err.write(text),
      outputError: (text, write) => write(text.replace(/^error: /, 'firelock: ')),
      getOutHasColors: () => false,
      getErrHasColors: () => false,
    })
    .showHelpAfterError('--help lists commands and options')
    .exitOverride();
}
