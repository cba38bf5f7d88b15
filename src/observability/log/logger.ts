import { type DestinationStream, type Logger, pino } from 'pino';
import { build as prettyStream } from 'pino-pretty';
import { systemClock } from '../../runtime/clock.ts';
import { reasonOf } from '../../runtime/reason.ts';

export type { Logger };

/** JSON lines, each with the process that wrote it; on a terminal the same in readable form. */
export function createLogger(level: string, output: DestinationStream & { isTTY?: boolean }): Logger {
  const options = {
    level,
    base: { pid: process.pid },
    timestamp: () => `,"time":"${new Date(systemClock.now()).toISOString()}"`,
    serializers: { err: serializedError },
  };
  if (!output.isTTY) return pino(options, output);
  return pino(
    options,
    prettyStream({ translateTime: 'SYS:HH:MM:ss.l', ignore: 'pid', singleLine: true, destination: 1 }),
  );
}

/**
 * Logs the error and its place without its data: the message and the stack of a failed query begin with its statement
 * and its parameters, and these are payloads and header values.
 */
function serializedError(error: unknown): object {
  if (!(error instanceof Error)) return { reason: String(error) };
  const stack = (error.stack ?? '').split('\n').filter((line) => /^\s+at /.test(line));
  return { type: error.name, reason: reasonOf(error), stack: stack.join('\n') };
}
