/** The exit codes of a command (docs/cli.md). */
export const EXIT = {
  done: 0,
  /** The server refused, or the command could not do what it was asked for. */
  failed: 1,
  /** The command line was not understood; nothing was sent. Not 2, which is what `plan` says of changes (EX_USAGE of sysexits.h). */
  usage: 64,
  /** There is no such schedule, run, limit, calendar or connection. */
  notFound: 3,
  /** The server could not be reached, or is short of time or without a database: the same command may work later. */
  unreachable: 4,
  /** The token is missing, wrong, or not enough. */
  notAllowed: 5,
  /** Ctrl-C. */
  interrupted: 130,
} as const;

type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** Ends a command: its lines go to standard error, and its code is that of the process. */
export class CliError extends Error {
  override readonly name = 'CliError';
  readonly exitCode: ExitCode;

  constructor(exitCode: ExitCode, message: string) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** A file that cannot be read or has faults, and all else that is no fault of the command line. */
export function failure(message: string): CliError {
  return new CliError(EXIT.failed, message);
}

export function usageError(message: string): CliError {
  return new CliError(EXIT.usage, message);
}
