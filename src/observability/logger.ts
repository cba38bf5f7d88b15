import { type Logger, pino } from 'pino';
import { build as prettyStream } from 'pino-pretty';

export type { Logger };

/** JSON lines; on a terminal the same, readable. */
export function createLogger(level: string, output: NodeJS.WriteStream): Logger {
  const options = { level, base: null, timestamp: () => `,"time":"${new Date().toISOString()}"` };
  if (!output.isTTY) return pino(options, output);
  return pino(
    options,
    prettyStream({ translateTime: 'SYS:HH:MM:ss.l', ignore: 'pid,hostname', destination: 1 }),
  );
}
